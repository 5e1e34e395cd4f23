import { writeSync } from 'node:fs';
import { ComponentProgram } from './component-program.mts';
import { CoreProgram, suspendingFunction } from './core-program.mts';
import { Guest, type GuestProgram } from './guest.mts';
import type { FromGuest, Program, ToGuest } from './wire.mts';

/*
 * What runs in a locked process: it may speak to its parent, and nothing else (Node's permission model; no file
 * system, no network,
 * no processes, no code from strings). One guest at a time has the thread; one that waits for a call of its own leaves it to others.
 */

const MAX_MODULES = 64;
const MARK = 4;
const programs = new Map<string, GuestProgram | Error>();
const running = new Map<number, Guest>();
const mark = new Float64Array(1);
const say = (message: FromGuest): void => void process.send?.(message);
/** Read by the parent when this process is dead or stuck: whose fault it is. */
function enter(id: number): void {
  mark[0] = id;
  writeSync(MARK, new Uint8Array(mark.buffer), 0, 8, 0);
}

/** What every sliced instance calls with its number when its slice is used up. */
const askForMore = suspendingFunction(async number => running.get(number)?.slice());

function load(module: string, program: Program): void {
  if (programs.size >= MAX_MODULES) programs.delete(programs.keys().next().value as string);
  try {
    programs.set(module, program.kind === 'core' ? new CoreProgram(program.bytes, askForMore) : new ComponentProgram(program));
  } catch (error) {
    programs.set(module, error as Error);
  }
}

process.on('message', async (message: ToGuest) => {
  switch (message.type) {
    case 'load':
      return load(message.module, message.program);
    case 'run': {
      const program = programs.get(message.module);
      if (!program) return say({ type: 'missing', id: message.id });
      const guest = new Guest(message, { say, enter: () => enter(message.id) });
      running.set(message.id, guest);
      const done = await guest.execute(program);
      running.delete(message.id);
      return say(done);
    }
    case 'answer':
      return running.get(message.id)?.answer(message);
    case 'cancel':
      return running.get(message.id)?.cancel();
    case 'forget':
      return void programs.delete(message.module);
  }
});
process.on('disconnect', () => process.exit(0));
say({ type: 'ready' });
