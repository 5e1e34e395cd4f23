import { open, stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { fleetCommand, named } from './fleet-command.ts';

const LOOK_MS = 250;
const CHUNK = 65_536;

export default fleetCommand(
  'platform logs SERVICE [-f] [--lines N] [--json]\n\n  The last lines a service wrote; -f goes on with what it writes.',
  { follow: { type: 'boolean', short: 'f' }, lines: { type: 'string' } },
  [1, 1],
  async ({ words, options }, operator) => {
    const [instance] = await named(operator, words[0] as string);
    if (!instance) throw new Error('No instance.');
    const { size } = await stat(instance.log_path).catch(() => ({ size: 0 }));
    const count = Number(options['lines'] ?? 50) || 50;
    const { lines } = await operator.control<{ lines: string[] }>(
      'GET',
      `/v1/captain/services/${encodeURIComponent(instance.instance_key)}/log?lines=${Math.min(1_000, count)}`,
    );
    if (options['follow'] !== true) return { value: lines, lines };
    for (const line of lines) operator.print(line);
    return follow(instance.log_path, size, line => operator.print(line));
  },
);

/** Prints what is added to the file, until the command is ended. A file that was begun anew is read from its begin. */
async function follow(path: string, from: number, print: (line: string) => void): Promise<never> {
  let at = from;
  let rest = '';
  for (;;) {
    const file = await open(path, 'r').catch(() => undefined);
    if (file) {
      try {
        const { size } = await file.stat();
        if (size < at) at = 0;
        while (at < size) {
          const { bytesRead, buffer } = await file.read(Buffer.alloc(CHUNK), 0, CHUNK, at);
          if (bytesRead === 0) break;
          at += bytesRead;
          const parts = (rest + buffer.subarray(0, bytesRead).toString('utf8')).split('\n');
          rest = parts.pop() ?? '';
          for (const line of parts) print(line);
        }
      } finally {
        await file.close();
      }
    }
    await delay(LOOK_MS);
  }
}
