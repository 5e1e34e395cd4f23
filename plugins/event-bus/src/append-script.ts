import { type Envelope, namesOf } from './entry.ts';
import { type StreamRef, streamKey } from './names.ts';

/** An event for its stream. */
export type Appended = StreamRef & { readonly envelope: Envelope };

/** Marks why a row was not appended; no id begins so. */
const FAULT = '!';

/**
 * ARGV: how many members differ from row to row, how many are the same, the names of those that differ, names and values of those that are
 * the same, then for every row the values of those that differ. Answers an id or a fault for each row.
 */
const APPEND = `
local differing, same = tonumber(ARGV[1]), tonumber(ARGV[2])
local fields, answers = {}, {}
for n = 1, differing do fields[2 * n - 1] = ARGV[2 + n] end
for n = 1, 2 * same do fields[2 * differing + n] = ARGV[2 + differing + n] end
for first = 3 + differing + 2 * same, #ARGV, differing do
  for n = 1, differing do fields[2 * n] = ARGV[first + n - 1] end
  local answer = redis.pcall('XADD', KEYS[1], '*', unpack(fields))
  answers[#answers + 1] = type(answer) == 'table' and '${FAULT}' .. answer.err or answer
end
return answers`;

/** Rows that go onto one stream with one command, as they have the same members. */
interface Run {
  readonly stream: string;
  readonly names: readonly string[];
  readonly envelopes: Envelope[];
  readonly positions: number[];
}

/** Appends many rows with few commands: a command for each costs the client more than everything else about an event. */
export class AppendScript {
  readonly #runs: readonly Run[];

  constructor(rows: readonly Appended[]) {
    this.#runs = runsOf(rows);
  }

  get commands(): string[][] {
    return this.#runs.map(commandOf);
  }

  /** The id of every row, or why there is none, from what the commands were answered. */
  idsOf(answers: readonly unknown[]): (string | Error)[] {
    const ids: (string | Error)[] = [];
    for (const [index, { positions }] of this.#runs.entries()) {
      const answer = answers[index];
      for (const [n, position] of positions.entries()) ids[position] = answer instanceof Error ? answer : idOf((answer as readonly string[])[n] as string);
    }
    return ids;
  }
}

const idOf = (answer: string): string | Error => (answer.startsWith(FAULT) ? new Error(answer.slice(FAULT.length)) : answer);

/** In their order on every stream. */
function runsOf(rows: readonly Appended[]): Run[] {
  const runs: Run[] = [];
  const open = new Map<string, Run>();
  for (const [position, { env, family, envelope }] of rows.entries()) {
    const stream = streamKey({ env, family });
    const names = namesOf(envelope);
    let run = open.get(stream);
    if (!run || !isSame(run.names, names)) {
      run = { stream, names, envelopes: [], positions: [] };
      runs.push(run);
      open.set(stream, run);
    }
    run.envelopes.push(envelope);
    run.positions.push(position);
  }
  return runs;
}

function commandOf({ stream, names, envelopes }: Run): string[] {
  const memberOf = (envelope: Envelope, name: string): string => envelope[name as keyof Envelope] as string;
  const first = envelopes[0] as Envelope;
  // A key of its own has every row, so that there always is a member by which they are counted.
  const isShared = (name: string): boolean => name !== 'idempotency_key' && envelopes.every(envelope => memberOf(envelope, name) === memberOf(first, name));
  const shared = names.filter(isShared);
  const differing = names.filter(name => !shared.includes(name));
  const command = ['EVAL', APPEND, '1', stream, String(differing.length), String(shared.length), ...differing];
  for (const name of shared) command.push(name, memberOf(first, name));
  for (const envelope of envelopes) for (const name of differing) command.push(memberOf(envelope, name));
  return command;
}

const isSame = (left: readonly string[], right: readonly string[]): boolean => left.length === right.length && left.every((name, index) => name === right[index]);
