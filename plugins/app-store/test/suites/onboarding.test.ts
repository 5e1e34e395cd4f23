import { identity } from '@platform/identity/contract';
import { as, type Persona } from '@platform/testing';
import { workflow } from '@platform/workflow/contract';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Listing } from '../../contract/schema/listing.ts';
import { accessOf } from '../fixtures/access.ts';
import { refusal, type Tenant, type World } from '../fixtures/world.ts';

const ID = '01900000-0000-7000-8000-0000000000aa';

/** Installs that wait for steps, with the real workflow service. */
export function describeOnboarding(given: () => World): void {
  describe('an install with onboarding', () => {
    let world: World;
    let acme: Tenant;
    let listing: Listing;
    /** An administrator of the environment, as the group says that the step names. */
    let decider: Persona;
    beforeAll(async () => {
      world = given();
      acme = await world.tenant();
      decider = await world.person(acme.env_id, 'workflow:decisions:take', 'workflow:runs:read');
      const member = { group: `platform:env:${acme.env_id}:admins`, user_id: decider.id };
      await world.at(identity, as.machine('captain', 'auth:membership:write')).putGroupMember({ params: member, targetEnvId: acme.env_id });
      listing = await world.listing(acme, { onboarding: ['KYCCheckStep', 'ApprovalReviewStep', 'DocumentUploadStep'] });
    });
    const begin = async () => (await world.setup(acme, { listing_id: listing.listing_id })).instance;
    const shown = (instance_id: string) => world.host.by(acme.admin).getInstance({ params: { instance_id }, targetEnvId: acme.env_id });
    /** The step that waits for somebody. */
    const waiting = async (runId: string) => {
      await world.clock('2s');
      const run = await world.at(workflow, decider).getRun({ params: { run_id: runId } });
      return run.steps.find(({ status }) => status === 'paused');
    };
    const decide = async (runId: string, outcome: 'approved' | 'rejected') => {
      await expect.poll(() => waiting(runId), { timeout: 15_000 }).toMatchObject({ kind: 'ApprovalReviewStep' });
      const step = await waiting(runId);
      await world.at(workflow, decider).decide({ params: { run_id: runId, step_id: step?.step_id as string }, body: { outcome } });
    };
    const becomes = (instanceId: string, status: string) =>
      expect.poll(async () => (await world.clock('2s'), (await shown(instanceId)).status), { timeout: 20_000 }).toBe(status);

    test('APP-012 APP-013 APP-014 APP-017 WFL-003 runs in the workflow service, which calls each step back here, and goes on when somebody has approved', async () => {
      const [handler] = await (await world.sql('workflow'))<object[]>`select * from step_handlers where domain = 'app'`;
      expect(handler).toMatchObject({ domain: 'app', service: 'app', path: '/v1/internal/steps/execute' });
      const begun = await begin();
      const run_id = begun.workflow_run_id as string;
      expect(begun).toMatchObject({ status: 'onboarding', workflow_run_id: expect.any(String), oauth_client: null, app_instance_id: null });
      // Nothing is made before somebody has said yes.
      await expect
        .poll(() => waiting(run_id), { timeout: 15_000 })
        .toMatchObject({ kind: 'ApprovalReviewStep', status: 'paused', assignee_group: `platform:env:${acme.env_id}:admins` });
      expect(await accessOf(world, acme.env_id, begun.slug)).toEqual({ roles: [], groups: [], clients: [], signup: [], apps: [] });
      await decide(run_id, 'approved');
      await becomes(begun.instance_id, 'active');
      const run = await world.at(workflow, decider).getRun({ params: { run_id } });
      expect([run.workflow, run.status, run.steps.map(({ kind, output }) => [kind, output])]).toEqual([
        'app-install',
        'completed',
        [
          ['KYCCheckStep', { stub: true }],
          ['ApprovalReviewStep', { approved_by: decider.id }],
          ['DocumentUploadStep', { stub: true }],
        ],
      ]);
      expect((await accessOf(world, acme.env_id, begun.slug)).clients).toHaveLength(1);
      const sql = await world.sql('app');
      // No engine here: no table of this service has steps of a run, or their states.
      const tables = await sql<
        { name: string }[]
      >`select table_name as name from information_schema.tables where table_schema = current_schema() and table_name ~ 'run|workflow'`;
      expect(tables).toEqual([]);
    });

    test('APP-017 what somebody declines is not installed, and its slug is free again', async () => {
      const begun = await begin();
      await decide(begun.workflow_run_id as string, 'rejected');
      await becomes(begun.instance_id, 'rejected');
      expect(await world.told(begun.instance_id)).toEqual(['platform:app:instance:created', 'platform:app:instance:failed']);
      expect(await world.setup(acme, { listing_id: listing.listing_id, instance: { name: 'again', slug: begun.slug } })).toMatchObject({
        instance: { status: 'onboarding' },
      });
    });

    test('an install whose workflow service is away begins its onboarding later; one that is uninstalled meanwhile ends its run', async () => {
      let id = '';
      {
        using _ = world.failing('workflow', operation => operation === 'startRun');
        const begun = await begin();
        expect(begun).toMatchObject({ status: 'onboarding', workflow_run_id: null });
        id = begun.instance_id;
      }
      await expect
        .poll(async () => (await world.clock('1m'), (await shown(id)).workflow_run_id), { timeout: 20_000 })
        .toEqual(expect.any(String));
      await world.host.by(acme.admin).deleteInstance({ params: { instance_id: id }, targetEnvId: acme.env_id });
      const run = await world.at(workflow, decider).getRun({ params: { run_id: (await shown(id)).workflow_run_id as string } });
      expect([run.status, (await shown(id)).status]).toEqual(['failed', 'uninstalled']);
    });

    test('an uninstall that meets the end of the onboarding gives way to the install, and leaves nothing in its way', async () => {
      const begun = await begin();
      const sql = await world.sql('app');
      // The onboarding ends between the look at the instance and the hand on it.
      await sql.unsafe(
        `create function ends() returns trigger language plpgsql as $$ begin new.status = 'provisioning'; return new; end $$;
         create trigger ends before update of leased_until on instances for each row
           when (old.status = 'onboarding') execute function ends()`,
      );
      const uninstall = () =>
        world.host.by(acme.admin).deleteInstance({ params: { instance_id: begun.instance_id }, targetEnvId: acme.env_id });
      try {
        expect(await refusal(uninstall())).toEqual([409, 'instance_busy']);
      } finally {
        await sql.unsafe('drop trigger ends on instances; drop function ends()');
      }
      const left = await sql`
        select status, leased_until, (select count(*)::int from work_tasks where name = 'uninstall' and key = instance_id::text) as tasks
        from instances where instance_id = ${begun.instance_id}`;
      expect([...left]).toEqual([{ status: 'provisioning', leased_until: null, tasks: 0 }]);
      await sql`update instances set status = 'onboarding' where instance_id = ${begun.instance_id}`;
      expect(await refusal(uninstall())).toBe('none');
    });

    test('APP-014 APP-015 APP-016 APP-017 each kind of step is answered as the contract says, to the workflow service alone', async () => {
      const step = (kind: string, more: object = {}) => ({
        run_id: ID,
        step_id: ID,
        domain: 'app',
        kind,
        env_id: acme.env_id,
        attempt: 1,
        idempotency_key: 'k',
        input: { name: 'Book' },
        ...more,
      });
      const caller = world.host.by(as.machine('workflow', 'app:steps:execute'));
      for (const kind of ['KYCCheckStep', 'DocumentUploadStep'])
        expect(await caller.executeStep({ body: step(kind) })).toEqual({ status: 'completed', output: { stub: true } });
      expect(await caller.executeStep({ body: step('ApprovalReviewStep') })).toEqual({
        status: 'paused',
        delegate: {
          kind: 'manual_decision',
          title: 'Install Book?',
          assignee_group: `platform:env:${acme.env_id}:admins`,
          expires_s: 604_800,
        },
      });
      const decision = { by: ID, at: '2026-01-01T00:00:00.000Z' };
      expect(
        await caller.executeStep({ body: step('ApprovalReviewStep', { decision: { outcome: 'approved', ...decision } }) }),
      ).toMatchObject({ status: 'completed' });
      expect(
        await caller.executeStep({ body: step('ApprovalReviewStep', { decision: { outcome: 'rejected', comment: 'no', ...decision } }) }),
      ).toEqual({
        status: 'failed',
        error: { code: 'rejected', message: 'no', retryable: false },
      });
      expect(await refusal(caller.executeStep({ body: step('FireworkStep') }))).toEqual([400, 'unknown_step_kind']);
      expect(await refusal(world.host.by(as.user('app:steps:execute')).executeStep({ body: step('KYCCheckStep') }))).toEqual([
        403,
        'm2m_required',
      ]);
      expect((await world.host.fetch('/v1/internal/steps/execute', { method: 'POST', body: '{}' })).status).toBe(401);
      expect(
        (await world.host.fetch('/v1/internal/steps/execute', { method: 'POST', body: '{}', as: await world.host.workload('captain') }))
          .status,
      ).toBe(403);
    });
  });
}
