import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { identity as identityContract } from '@platform/identity/contract';
import identity from '@platform/identity/plugin';
import { notification } from '@platform/notification/contract';
import {
  as,
  boot,
  type BootedHost,
  manifestOf,
  newId,
  openTestStores,
  type Persona,
  type PostgresPool,
  servicePool,
  type TestStores,
} from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { registry } from '../../contract/index.ts';
import type { Invitation } from '../../contract/schema/member.ts';
import type { Org } from '../../contract/schema/tenant.ts';
import plugin from '../../src/plugin.ts';
import { guest } from '../fixtures/invited.ts';
import { PostOffice, tokenIn } from '../fixtures/post-office.ts';
import { World } from '../fixtures/world.ts';

/*
 * The registry and the identity service, each in a process of its own, as they meet in production: what a person may do is asked live.
 */

let stores: TestStores;
let office: PostOffice;
let people: BootedHost<typeof identityContract>;
let tenants: BootedHost<typeof registry>;
let accounts: PostgresPool;
const keys = mkdtempSync(join(tmpdir(), 'platform-joining-'));

beforeAll(async () => {
  stores = await openTestStores();
  const { PLATFORM_SYS_KEY_ENCRYPTION_REF: key = '' } = World.environment(keys);
  people = await boot(identity, {
    stores,
    environment: { PLATFORM_AUTH_KEY_ENCRYPTION_REF: key },
    elsewhere: ['sys'],
    manifests: [manifestOf(registry, '0.0.0-test')],
  });
  office = await PostOffice.open(stores);
  const manifests = [identity.contract, notification].map(contract => manifestOf(contract, '0.0.0-test'));
  tenants = await boot(plugin, { stores, environment: World.environment(keys), elsewhere: ['auth', 'post'], manifests });
  accounts = await servicePool(stores, 'auth');
});
afterAll(async () => {
  await tenants?.[Symbol.asyncDispose]();
  await office?.[Symbol.asyncDispose]();
  await people?.[Symbol.asyncDispose]();
  await accounts?.close(0);
  await stores?.[Symbol.asyncDispose]();
  rmSync(keys, { recursive: true, force: true });
});

/** A person with an account; what they may do is what the identity service says. */
const person = async (): Promise<Persona> => {
  const made = guest(`${newId()}@example.org`);
  await accounts.sql`insert into users ${accounts.sql.row({
    user_id: made.id,
    env_id: made.envId,
    email: made.email,
    email_ci: made.email,
    email_verified: true,
  })}`;
  return made;
};
const send = (persona: Persona, method: string, path: string, body?: object) =>
  tenants.fetch(path, { method, persona, ...(body ? { body: JSON.stringify(body) } : {}) });

test('REG-015 REG-017 REG-118 REG-066 REG-067 H-31 from the invitation to the very next request, and out again', async () => {
  const [owner, ada] = [await person(), await person()];
  // Who makes an organization brings the scopes to make one; everything after is asked of the identity service.
  // What is known of her before counts no more when she has an organization.
  expect((await send(owner, 'GET', '/v1/o')).json['code']).toBe('policy_denied');
  const org = (await tenants
    .by({ ...owner, scopes: ['sys:org:admin'] })
    .createOrg({ body: { slug: 'joining', display_name: 'Joining' } })) as Org;
  const path = `/v1/org/${org.org_id}`;
  expect((await send(owner, 'GET', path)).status).toBe(200);

  const invited = await send(owner, 'POST', `${path}/invitations`, { email: ada.email });
  expect(invited.status).toBe(201);
  await tenants.clock.advance('10s');
  const [mail] = office.received;
  const token = tokenIn(mail as NonNullable<typeof mail>);

  // A refusal is cached where it can be: the acceptance must end it.
  expect((await send(ada, 'GET', path)).json['code']).toBe('policy_denied');
  const accepted = await send(ada, 'POST', `${path}/invitations/accept`, { token });
  expect([accepted.status, accepted.json['group']]).toEqual([200, `platform:org:${org.org_id}:admins`]);
  expect((await send(ada, 'GET', path)).json).toMatchObject({ org_id: org.org_id });
  expect((await send(ada, 'GET', `${path}/invitations`)).json['items']).toMatchObject([
    { status: 'accepted' } satisfies Partial<Invitation>,
  ]);
  const list = async () =>
    ((await send(owner, 'GET', `${path}/memberships`)).json['items'] as { user_id: string; email: string; access: string }[]).map(
      ({ user_id, email, access }) => [user_id, email, access],
    );
  expect(await list()).toEqual([
    [owner.id, owner.email, 'owner'],
    [ada.id, ada.email, 'admin'],
  ]);

  const env = (await send(owner, 'POST', '/v1/e', { org_id: org.org_id, slug: 'prod', display_name: 'Production' })).json as {
    env_id: string;
  };
  await people
    .by(as.machine('sys', 'auth:membership:write'))
    .putGroupMember({ params: { group: `platform:env:${env.env_id}:viewers`, user_id: ada.id }, targetEnvId: env.env_id });
  expect((await send(owner, 'PUT', `${path}/memberships/${ada.id}`, { access: 'viewer' })).json).toMatchObject({ access: 'viewer' });
  expect((await send(ada, 'GET', `${path}/invitations`)).json['code']).toBe('policy_denied');
  expect((await send(ada, 'GET', path)).status).toBe(200);

  expect((await send(owner, 'DELETE', `${path}/memberships/${ada.id}`)).status).toBe(204);
  expect((await send(ada, 'GET', path)).json['code']).toBe('policy_denied');
  expect(await list()).toEqual([[owner.id, owner.email, 'owner']]);
  expect([...(await accounts.sql<object[]>`select 1 from group_members where user_id = ${ada.id}`)]).toEqual([]);
  expect((await send(owner, 'DELETE', `${path}/memberships/${owner.id}`)).json['code']).toBe('last_owner');
});

test('REG-149 REG-150 a real access model that is gone is told, and not made again', async () => {
  const [owner, ada] = [await person(), await person()];
  const org = (await tenants
    .by({ ...owner, scopes: ['sys:org:admin'] })
    .createOrg({ body: { slug: 'modelless', display_name: 'Modelless' } })) as Org;
  await send(owner, 'POST', `/v1/org/${org.org_id}/invitations`, { email: ada.email });
  await tenants.clock.advance('10s');
  await accounts.sql`delete from user_groups where name = ${`platform:org:${org.org_id}:admins`}`;
  const answer = await send(ada, 'POST', `/v1/org/${org.org_id}/invitations/accept`, {
    token: tokenIn(office.received.at(-1) as NonNullable<(typeof office.received)[number]>),
  });
  expect([answer.status, answer.json['code']]).toEqual([409, 'access_model_missing']);
  expect([...(await accounts.sql<object[]>`select 1 from user_groups where name = ${`platform:org:${org.org_id}:admins`}`)]).toEqual([]);
});
