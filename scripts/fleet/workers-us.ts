import { readdirSync, readFileSync } from 'node:fs';

const TICK_US = 10_000;

/**
 * Microseconds of CPU of this process's pool threads, which hash passwords and do little else; nothing where the system does not say (Linux
 * says).
 */
export function workersUs(): number | undefined {
  try {
    const tasks = readdirSync('/proc/self/task').filter(task =>
      readFileSync(`/proc/self/task/${task}/comm`, 'utf8').startsWith('libuv-worker'),
    );
    return tasks.reduce((sum, task) => {
      const stat = readFileSync(`/proc/self/task/${task}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return sum + (Number(fields[11]) + Number(fields[12])) * TICK_US;
    }, 0);
  } catch {
    return undefined;
  }
}
