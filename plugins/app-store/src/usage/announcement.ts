import { SYSTEM } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { STEP_KINDS } from '../instances/onboarding.ts';

export const SCHEDULE = 'app-daily-counters';

/**
 * Says to the workflow service which steps are answered here, and to the scheduler what is done daily; the same again changes nothing
 * (APP-013, SCH-001).
 */
export class Announcement {
  readonly #ctx: Ctx;
  #made = false;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async make(): Promise<void> {
    if (this.#made) return;
    const { workflow, scheduler } = this.#ctx.services;
    await workflow.registerHandler({
      params: { domain: 'app' },
      body: { service: 'app', kinds: [...STEP_KINDS], path: '/v1/internal/steps/execute' },
    });
    await scheduler.putSchedule({
      params: { name: SCHEDULE },
      body: {
        cron: '5 0 * * *',
        timezone: 'UTC',
        target: { service: 'app', path: '/v1/internal/jobs/daily-counters' },
        env_id: SYSTEM.envId,
      },
    });
    this.#made = true;
  }
}
