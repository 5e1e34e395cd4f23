import type { CronTimes } from '@platform/sdk';
import { cronOf } from '@platform/checks';

/** Five fields of letters, digits and the signs of cron: no seconds, no nickname, no date. */
const FIVE_FIELDS = /^ *[A-Za-z0-9*/,#?-]+(?: +[A-Za-z0-9*/,#?-]+){4} *$/;

/** The times of an expression that somebody else wrote; undefined where it, or its zone, cannot be read. */
export function cronTimes(cron: string, timezone: string): CronTimes | undefined {
  if (!FIVE_FIELDS.test(cron)) return undefined;
  try {
    const times = cronOf({ cron, timezone });
    // A zone is read with the first question.
    times.nextRun();
    return {
      next: after => times.nextRun(after) ?? undefined,
      // The library's question is for what came before: a moment later, this moment counts.
      last: until => times.previousRuns(1, new Date(until.getTime() + 1))[0],
    };
  } catch {
    return undefined;
  }
}
