import type { JobDef } from '@platform/sdk';
import { Cron } from 'croner';

/** Throws on an expression or a zone that does not exist, which the checks say before a start; the platform reads every expression by it. */
export const cronOf = ({ cron = '', timezone = 'UTC' }: Pick<JobDef, 'cron' | 'timezone'>): Cron =>
  new Cron(cron, { timezone, paused: true, mode: '5-part' });
