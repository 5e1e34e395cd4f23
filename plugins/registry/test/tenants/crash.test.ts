import { as, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { registry } from '../../contract/index.ts';
import { CrashGround, INVITED, type Invitation, type Scenario } from '../fixtures/crash-ground.ts';

const AT_ONCE = 3;
/** Every point; otherwise each fifth, and the last ten, around the commit. */
const THOROUGH = process.env['PLATFORM_THOROUGH'] === '1';
const admin = as.user('sys:sys:admin', 'sys:read', 'sys:org:admin', 'sys:env:admin');
let ground: CrashGround;
let survivor: BootedHost<typeof registry>;
beforeAll(async () => {
  ground = await CrashGround.open();
  survivor = await ground.survivor();
});
afterAll(() => ground[Symbol.asyncDispose]());

interface Death {
  readonly slug: string;
  readonly owner: string;
  readonly invitation?: Invitation;
}

/** One process for every point of the scenario, each killed there; then time passes for the one that is left. */
async function dieEverywhere(scenario: Scenario): Promise<Death[]> {
  const death = async (slug: string): Promise<Death> => ({
    slug,
    owner: await ground.person(),
    ...(scenario === 'accept' ? { invitation: await ground.invite(survivor, slug) } : {}),
  });
  const points = (await ground.run(scenario, await death(`${scenario}-lives`))) as number;
  const chosen = Array.from({ length: points }, (_, index) => index + 1).filter(
    point => THOROUGH || point % 5 === 0 || point > points - 10,
  );
  const deaths = await Promise.all(chosen.map(async killAt => ({ ...(await death(`${scenario}-dies-${killAt}`)), killAt })));
  const waiting = [...deaths];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let next = waiting.pop(); next; next = waiting.pop())
        expect([next.slug, await ground.run(scenario, next)]).toEqual([next.slug, undefined]);
    }),
  );
  await timePasses();
  return deaths;
}

async function timePasses(): Promise<void> {
  await ground.registry.sql`update creations set started_at = now() - interval '1 hour'`;
  const names = ['followTenant', 'settleAcceptance'];
  // What the dead had taken comes back when their leases are over.
  const left = () =>
    ground.registry.sql<object[]>`select 1 from work_tasks where name = any(${names}::text[]) and state in ('waiting', 'running')`;
  do {
    await ground.registry.sql`update work_tasks set due_at = '2020-01-01' where state = 'waiting' and name = any(${names}::text[])`;
    await survivor.clock.advance('30s');
  } while ((await left()).length > 0);
}

/** Events of a subject, as the bus has them or will have them, and those nobody may hear yet. */
async function events(like: string, id: string): Promise<{ told: string[]; held: number }> {
  const rows = await ground.registry.sql<{ event_type: string; hold: string | null }[]>`
    select event_type, hold from outbox where event_type like ${like} and (payload->>'org_id' = ${id} or payload->>'env_id' = ${id})
      order by event_type`;
  return {
    told: rows.filter(({ hold }) => hold === null).map(({ event_type }) => event_type.split(':').slice(2).join(':')),
    held: rows.filter(({ hold }) => hold !== null).length,
  };
}

const trail = async (action: string, id: string) =>
  (await ground.registry.sql<object[]>`select 1 from audit where action = ${action} and resource->>'id' = ${id}`).length;
const groups = async (kind: string, id: string) =>
  (await ground.identity.sql<object[]>`select 1 from user_groups where name like ${`platform:${kind}:${id}:%`}`).length;
const unfinished = async (id: string) => (await survivor.by(admin).listUnfinished({})).items.some(row => row.id === id);

describe.each(['org', 'env'] as const)('killed between any two awaits of creating an %s', kind => {
  test('REG-011 REG-024 REG-025 it is there whole, or not at all, or an orphan that nobody heard of and an operator can end', {
    timeout: 300_000,
  }, async () => {
    const outcomes = { whole: 0, nothing: 0, orphan: 0 };
    for (const { slug, owner } of await dieEverywhere(`create-${kind}`)) {
      const [record] =
        kind === 'org'
          ? await ground.registry.sql<{ id: string; org_id: string }[]>`select org_id as id, org_id from orgs where slug = ${slug}`
          : await ground.registry.sql<
              { id: string; org_id: string }[]
            >`select env_id as id, org_id from envs join orgs using (org_id) where orgs.slug = ${slug}`;
      if (!record) {
        outcomes.nothing += 1;
        const told = await ground.registry.sql<
          object[]
        >`select 1 from outbox where event_type = ${`platform:sys:${kind}:created`} and payload->>'org_slug' = ${slug}`;
        const held = await ground.identity.sql<
          object[]
        >`select 1 from group_members where user_id = ${owner} and group_name like ${`platform:${kind}:%`}`;
        expect([slug, told.length, held.length]).toEqual([slug, 0, 0]);
        continue;
      }
      const [{ told, held }, model, row] = [
        await events(`platform:sys:${kind}:created`, record.id),
        await groups(kind, record.id),
        await unfinished(record.id),
      ];
      if (model > 0) {
        outcomes.whole += 1;
        expect([slug, told, held, row, await trail(`${kind}.created`, record.id)]).toEqual([slug, [`${kind}:created`], 0, false, 1]);
        continue;
      }
      outcomes.orphan += 1;
      expect([slug, told, held, row]).toEqual([slug, [], 1, true]);
      const by = survivor.by(admin);
      await (kind === 'org' ? by.archiveOrg({ params: { id: record.id } }) : by.deleteEnv({ params: { env_id: record.id } }));
      expect(await events(`platform:sys:${kind}:created`, record.id)).toEqual({ told: [], held: 0 });
      if (kind === 'org')
        await by
          .createOrg({ body: { slug, display_name: slug } })
          .catch(error => expect(error).toMatchObject({ code: 'provisioning_failed' }));
    }
    expect(outcomes.whole).toBeGreaterThan(0);
    expect(outcomes.nothing).toBeGreaterThan(0);
    expect(outcomes.orphan).toBeGreaterThan(0);
  });
});

describe('killed between any two awaits of deleting an organization', () => {
  test('REG-064 REG-065 REG-125 REG-129 H-32 everything is still there, or everything is gone and told once', {
    timeout: 300_000,
  }, async () => {
    const outcomes = { untouched: 0, gone: 0 };
    for (const { slug } of await dieEverywhere('delete-org')) {
      const [created] = await ground.registry.sql<
        { org_id: string }[]
      >`select payload->>'org_id' as org_id from outbox where event_type = 'platform:sys:org:created' and payload->>'org_slug' = ${slug}`;
      const orgId = created?.org_id ?? '';
      const envs = await ground.registry.sql<
        { env_id: string }[]
      >`select payload->>'env_id' as env_id from outbox where event_type = 'platform:sys:env:created' and payload->>'org_id' = ${orgId}`;
      const [{ records }] = await ground.registry.sql<
        [{ records: number }]
      >`select (select count(*) from orgs where org_id = ${orgId})::int + (select count(*) from envs
        where org_id = ${orgId})::int as records`;
      const { told } = await events('platform:sys:%:deleted', orgId);
      const models = [await groups('org', orgId), ...(await Promise.all(envs.map(({ env_id }) => groups('env', env_id))))];
      const realms = (await ground.identity.sql<object[]>`select 1 from realms where org_id = ${orgId}`).length;
      const state = [slug, records, told, models, realms, await trail('org.deleted', orgId)];
      if (records > 0) {
        outcomes.untouched += 1;
        expect(state).toEqual([slug, 3, [], [3, 6, 6], 2, 0]);
      } else {
        outcomes.gone += 1;
        expect(state).toEqual([slug, 0, ['env:deleted', 'env:deleted', 'org:deleted'], [0, 0, 0], 0, 1]);
      }
    }
    expect(outcomes.untouched).toBeGreaterThan(0);
    expect(outcomes.gone).toBeGreaterThan(0);
  });
});

describe('killed between any two awaits of accepting an invitation', () => {
  test('REG-066 REG-067 REG-068 C7 the person is in and it is told once, or out and the same link still works', {
    timeout: 300_000,
  }, async () => {
    const outcomes = { accepted: 0, pending: 0 };
    for (const { slug, owner, invitation } of await dieEverywhere('accept')) {
      const { orgId, invitationId, token } = invitation as Invitation;
      const state = async () => {
        const [row] = await ground.registry.sql<{ status: string }[]>`select status from invitations where invitation_id = ${invitationId}`;
        const member = await ground.identity.sql<
          object[]
        >`select 1 from group_members where user_id = ${owner} and group_name = ${`platform:org:${orgId}:admins`}`;
        const told = await ground.registry.sql<
          object[]
        >`select 1 from outbox where event_type = 'platform:sys:invitation:accepted' and payload->>'invitation_id' = ${invitationId}`;
        return [slug, row?.status, member.length, told.length, await trail('invitation.accepted', invitationId)];
      };
      const [, status] = await state();
      outcomes[status as 'accepted' | 'pending'] += 1;
      if (status === 'pending') {
        expect(await state()).toEqual([slug, 'pending', 0, 0, 0]);
        await survivor
          .by({ ...as.user('sys:read'), id: owner, email: INVITED })
          .acceptInvitation({ params: { org_id: orgId }, body: { token } });
      }
      expect(await state()).toEqual([slug, 'accepted', 1, 1, 1]);
    }
    expect(outcomes.accepted).toBeGreaterThan(0);
    expect(outcomes.pending).toBeGreaterThan(0);
  });
});
