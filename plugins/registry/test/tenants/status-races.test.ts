import { eventually, NameServer } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Invitation } from '../../contract/schema/member.ts';
import { guest, invited } from '../fixtures/invited.ts';
import { PostOffice } from '../fixtures/post-office.ts';
import { refusal, World } from '../fixtures/world.ts';

let names: NameServer;
let world: World;
let office: PostOffice;
beforeAll(async () => {
  names = await NameServer.start();
  world = await World.start({ PLATFORM_SYS_DNS_SERVERS: names.address });
  office = await PostOffice.open(world.stores);
});
afterAll(async () => {
  await office?.[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  await names[Symbol.asyncDispose]();
});

/** A change under way, of something in a tenant that is suspended in the same moment. */
interface Change {
  readonly org: string;
  readonly env?: string;
  readonly run: () => Promise<unknown>;
}

const ofEnv = (make: (tenant: Awaited<ReturnType<World['tenant']>>) => Promise<() => Promise<unknown>>) => async (): Promise<Change> => {
  const tenant = await world.tenant();
  return { org: tenant.org.org_id, env: tenant.env.env_id, run: await make(tenant) };
};
/** With an app instance, too. */
const ofApp = (
  make: (
    by: ReturnType<typeof world.host.by>,
    params: { env_id: string; app_instance_id: string },
    hostname: string,
  ) => Promise<() => Promise<unknown>>,
) =>
  ofEnv(async ({ owner, env }) => {
    const app = await world.app(owner, env.env_id);
    return make(world.host.by(owner), { env_id: env.env_id, app_instance_id: app.app_instance_id }, app.hostname);
  });
const ofBinding = (
  make: (by: ReturnType<typeof world.host.by>, params: { env_id: string; binding_id: string }) => () => Promise<unknown>,
) =>
  ofEnv(async ({ owner, env }) => {
    const { binding_id } = (await world.host
      .by(owner)
      .createBinding({ params: { env_id: env.env_id }, body: { app_id: 'crm', slug: 'sales' } })) as { binding_id: string };
    return make(world.host.by(owner), { env_id: env.env_id, binding_id });
  });
const ofOrg =
  (make: (by: ReturnType<typeof world.host.by>, orgId: string) => Promise<() => Promise<unknown>>) => async (): Promise<Change> => {
    const { org, owner } = await world.org();
    return { org: org.org_id, run: await make(world.host.by(owner), org.org_id) };
  };
const member = (orgId: string): string => {
  const { id } = world.stranger();
  world.directory.groups(id, `platform:org:${orgId}:viewers`);
  return id;
};

const changes: readonly (readonly [string, () => Promise<Change>])[] = [
  [
    'an app instance is created',
    ofEnv(
      async ({ owner, env }) =>
        () =>
          world.app(owner, env.env_id),
    ),
  ],
  ['an app instance is changed', ofApp(async (by, params) => () => by.updateApplication({ params, body: { name: 'Another' } }))],
  ['an app instance is archived', ofApp(async (by, params) => () => by.archiveApplication({ params }))],
  [
    'a custom domain is asked for',
    ofApp(
      async (by, params) => () => by.putCustomDomain({ params, body: { fqdn: `${params.app_instance_id.slice(-12)}.customer.example` } }),
    ),
  ],
  [
    'a custom domain is given up',
    ofApp(async (by, params) => {
      await by.putCustomDomain({ params, body: { fqdn: `${params.app_instance_id.slice(-12)}.customer.example` } });
      return () => by.deleteCustomDomain({ params });
    }),
  ],
  [
    'a custom domain is proven',
    ofApp(async (by, params, hostname) => {
      const { fqdn, txt_name, txt_value } = await by.putCustomDomain({
        params,
        body: { fqdn: `${params.app_instance_id.slice(-12)}.customer.example` },
      });
      names.set(txt_name, { TXT: [txt_value] });
      names.set(fqdn, { CNAME: [hostname] });
      return () => by.verifyCustomDomain({ params });
    }),
  ],
  [
    'a binding is created',
    ofEnv(
      async ({ owner, env }) =>
        () =>
          world.host.by(owner).createBinding({ params: { env_id: env.env_id }, body: { app_id: 'crm', slug: 'sales' } }),
    ),
  ],
  ['a binding is changed', ofBinding((by, params) => () => by.updateBinding({ params, body: { slug: 'other' } }))],
  ['a binding is deleted', ofBinding((by, params) => () => by.deleteBinding({ params }))],
  [
    'a service is configured',
    ofEnv(
      async ({ owner, env }) =>
        () =>
          world.host.by(owner).updateServices({
            params: { env_id: env.env_id },
            body: { services: [{ service: 'auth', enabled: true, config: { changed: true } }] },
          }),
    ),
  ],
  [
    'the branding of an environment is replaced',
    ofEnv(
      async ({ owner, env }) =>
        () =>
          world.host.by(owner).putEnvBranding({ params: { id: env.env_id }, body: {} }),
    ),
  ],
  [
    'an environment is renamed',
    ofEnv(
      async ({ owner, env }) =>
        () =>
          world.host.by(owner).updateEnv({ params: { env_id: env.env_id }, body: { display_name: 'Other' } }),
    ),
  ],
  ['the branding of an organization is replaced', ofOrg(async (by, id) => () => by.putOrgBranding({ params: { id }, body: {} }))],
  [
    'a member gets another level',
    ofOrg(async (by, org_id) =>
      (
        (user_id: string) => () =>
          by.changeMembership({ params: { org_id, user_id }, body: { access: 'admin' } })
      )(member(org_id)),
    ),
  ],
  [
    'a member is removed',
    ofOrg(async (by, org_id) =>
      (
        (user_id: string) => () =>
          by.removeMembership({ params: { org_id, user_id } })
      )(member(org_id)),
    ),
  ],
  [
    'somebody is invited',
    ofOrg(async (by, org_id) => () => by.createInvitation({ params: { org_id }, body: { email: 'new@example.org' } })),
  ],
  [
    'an invitation is withdrawn',
    ofOrg(async (by, org_id) => {
      const { invitation_id } = (await by.createInvitation({ params: { org_id }, body: { email: 'new@example.org' } })) as Invitation;
      return () => by.revokeInvitation({ params: { org_id, invitation_id } });
    }),
  ],
  [
    'an invitation is accepted',
    async () => {
      const { org, email, token } = await invited(world, office);
      return {
        org: org.org_id,
        run: () => world.host.by(guest(email)).acceptInvitation({ params: { org_id: org.org_id }, body: { token } }),
      };
    },
  ],
];

/** What waits for a lock, when so many do. */
async function waiting(count: number): Promise<string[]> {
  for (;;) {
    const rows = await world.sql<
      { query: string }[]
    >`select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    if (rows.length >= count) return rows.map(({ query }) => query);
  }
}
const suspend = ({ org, env }: Change) =>
  env
    ? world.host.by(world.admin()).updateEnv({ params: { env_id: env }, body: { status: 'suspended' } })
    : world.host.by(world.admin()).updateOrg({ params: { id: org }, body: { status: 'suspended' } });
const told = async ({ org, env }: Change): Promise<number> =>
  (
    await world.sql<object[]>`select 1 from outbox where payload->>'env_id' = ${env ?? null} or payload->>'org_id' = ${org}
      or payload->'details'->>'org_id' = ${org}`
  ).length;

describe.each(changes)('while %s', (_, make) => {
  test('G-SYS-02 a suspension that comes first refuses it, and nothing is written', async () => {
    const change = await make();
    const before = await told(change);
    let refused: Promise<[number, string]> | undefined;
    await world.tx(async sql => {
      if (change.env) await sql`update envs set status = 'suspended' where env_id = ${change.env}`;
      else await sql`update orgs set status = 'suspended' where org_id = ${change.org}`;
      // The statement of the change that waits saw an active record before.
      refused = refusal(change.run());
      await waiting(1);
    });
    expect(await refused).toEqual([409, change.env ? 'env_suspended' : 'org_suspended']);
    expect(await told(change)).toBe(before);
  });

  test('G-SYS-02 a suspension that comes second waits for it', async () => {
    const change = await make();
    let both: Promise<unknown> | undefined;
    await world.tx(async sql => {
      // Nothing commits that is audited, or has branding: the change has begun and not ended.
      await sql`select 1 from audit_clock for update`;
      await sql`lock table branding in share mode`;
      const changed = change.run();
      await waiting(1);
      both = Promise.all([changed, suspend(change)]);
      // The record itself is what it waits for, before it writes anything. The view tells what a session waits for before what it asked.
      await eventually(async () =>
        (await waiting(2)).flatMap(query => /select \* from (envs|orgs) .* for update/.exec(query)?.[1] ?? []),
      ).toEqual([change.env ? 'envs' : 'orgs']);
    });
    await both;
  });
});

test('G-SYS-02 an organization that is suspended in the moment suspends what happens in its environments', async () => {
  const { org, owner, env } = await world.tenant();
  let refused: Promise<[number, string]> | undefined;
  await world.tx(async sql => {
    await sql`update orgs set status = 'suspended' where org_id = ${org.org_id}`;
    refused = refusal(world.app(owner, env.env_id));
    await waiting(1);
  });
  expect(await refused).toEqual([409, 'org_suspended']);
});

test('G-SYS-08 an app instance that is archived in the moment takes no custom domain; one that is created in the moment moves with its organization', async () => {
  const { org, owner, env } = await world.tenant();
  const app = await world.app(owner, env.env_id);
  let ended: Promise<[number, string]> | undefined;
  await world.tx(async sql => {
    await sql`update app_instances set status = 'archived' where app_instance_id = ${app.app_instance_id}`;
    ended = refusal(
      world.host
        .by(owner)
        .putCustomDomain({ params: { env_id: env.env_id, app_instance_id: app.app_instance_id }, body: { fqdn: 'late.customer.example' } }),
    );
    await waiting(1);
  });
  expect(await ended).toEqual([409, 'record_archived']);
  let made: ReturnType<World['app']> | undefined;
  await world.tx(async sql => {
    await sql`update orgs set org_domain = 'moved.example' where org_id = ${org.org_id}`;
    made = world.app(owner, env.env_id, { slug: 'late' });
    await waiting(1);
  });
  expect(await made).toMatchObject({ hostname: `late.${env.slug}.moved.example` });
});
