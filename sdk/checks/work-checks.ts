import { type JobDef, type Manifest, milliseconds } from '@platform/sdk';
import { cronOf } from './cron.ts';
import type { AddFinding } from './finding.ts';

/** Jobs and tasks: their times, tries and places (E045, E046). */
export function checkWork(manifest: Manifest, add: AddFinding): void {
  for (const [name, job] of Object.entries(manifest.jobs)) {
    const fault = scheduleFault(job);
    if (fault) add('E045', `jobs.${name}`, fault, "Write every: '10s', or cron: '5 0 * * *' with an IANA timezone.");
  }
  for (const [name, { timeout, keep, keepDead, attempts = 1, backoff = [], slots = 1, sealed }] of Object.entries(manifest.tasks)) {
    const durations = [timeout, keep, keepDead].filter(value => value !== undefined && !isDuration(value));
    if (durations.length > 0)
      add('E046', `tasks.${name}`, `'${durations[0]}' is no duration.`, 'Write a number with ms, s, m, h or d, such as 30s.');
    if ((attempts !== 'unlimited' && (!Number.isInteger(attempts) || attempts < 1)) || backoff.some(wait => !(wait >= 0)))
      add('E046', `tasks.${name}`, 'Tries are whole numbers from 1 on, pauses are seconds.', 'Write attempts: 4, backoff: [1, 5, 30].');
    if (sealed !== undefined && manifest.keys?.[sealed]?.use !== 'seal')
      add('E046', `tasks.${name}.sealed`, `'${sealed}' is no key that seals.`, "Name one of the contract's keys with the use 'seal'.");
    if (!Number.isInteger(slots) || slots < 1 || slots > 256)
      add('E046', `tasks.${name}`, `${String(slots)} is no number of places.`, 'Write a whole number from 1 to 256, or leave it out.');
  }
}

const isDuration = (text: string): boolean => {
  try {
    return milliseconds(text) > 0;
  } catch {
    return false;
  }
};

function scheduleFault(job: JobDef): string | undefined {
  if ((job.every === undefined) === (job.cron === undefined)) return 'A job has either every or cron.';
  if (job.every !== undefined && !isDuration(job.every)) return `'${job.every}' is no duration.`;
  if (job.timeout !== undefined && !isDuration(job.timeout)) return `'${job.timeout}' is no duration.`;
  if (job.cron === undefined) return undefined;
  if (job.runs !== 'fleet') return 'A cron time belongs to the fleet: one process takes it.';
  try {
    cronOf(job).nextRun();
    return undefined;
  } catch {
    return `'${job.cron}' (${job.timezone ?? 'UTC'}) is no cron time of a known zone.`;
  }
}
