/** The times of a cron expression in a zone. */
export interface CronTimes {
  /** The first one after a moment; none when there is none ever again. */
  next(after: Date): Date | undefined;
  /** The last one up to a moment, that moment included. */
  last(until: Date): Date | undefined;
}
