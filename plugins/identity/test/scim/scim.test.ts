import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Directory, ENTERPRISE, type ScimUser, USER } from '../fixtures/directory.ts';
import { claimsOf, World } from '../fixtures/world.ts';

let world: World;
let directory: Directory;
let count = 0;
beforeAll(async () => {
  world = await World.start();
  directory = await Directory.open(world, 'scim:read', 'scim:write');
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const name = () => `person-${(count += 1)}@example.org`;
const whole = (userName: string) => ({
  userName,
  externalId: `ext-${userName}`,
  name: {
    formatted: 'Ms. Barbara J Jensen, III',
    familyName: 'Jensen',
    givenName: 'Barbara',
    middleName: 'Jane',
    honorificPrefix: 'Ms.',
    honorificSuffix: 'III',
  },
  displayName: 'Babs Jensen',
  nickName: 'Babs',
  profileUrl: 'https://login.example.com/bjensen',
  emails: [
    { value: userName, type: 'work', primary: true },
    { value: `home-${userName}`, type: 'home', display: 'at home' },
  ],
  addresses: [
    {
      streetAddress: '100 Universal City Plaza',
      locality: 'Hollywood',
      region: 'CA',
      postalCode: '91608',
      country: 'USA',
      formatted: '100 Universal City Plaza\nHollywood, CA 91608 USA',
      type: 'work',
      primary: true,
    },
  ],
  phoneNumbers: [{ value: '555-555-5555', type: 'work' }],
  ims: [{ value: 'someaimhandle', type: 'own word' }],
  photos: [{ value: 'https://photos.example.com/profilephoto/F', type: 'photo' }],
  userType: 'Employee',
  title: 'Tour Guide',
  preferredLanguage: 'en-US',
  locale: 'en-US',
  timezone: 'America/Los_Angeles',
  active: true,
  entitlements: [{ value: 'parking' }],
  roles: [{ value: 'guide', type: 'WindowsAzureActiveDirectoryRole', primary: false }],
  x509Certificates: [{ value: 'MIIDQzCCAqygAwIBAgICEAAw', type: 'sign' }],
  [ENTERPRISE]: {
    employeeNumber: '701984',
    costCenter: '4130',
    organization: 'Universal Studios',
    division: 'Theme Park',
    department: 'Tour Operations',
    manager: { value: '26118915-6090-4610-87e4-49d8ca9f808d', $ref: '../Users/26118915-6090-4610-87e4-49d8ca9f808d' },
  },
});

describe('a directory', () => {
  test('IDN-020 creates, reads, replaces, patches, lists and deletes users; nothing of the schema is lost on the way', async () => {
    const userName = name();
    const answer = await directory.send('POST', '/Users', {
      schemas: [USER, ENTERPRISE],
      ...whole(userName),
      groups: [{ value: 'x' }],
      id: 'mine',
      unheard: 1,
    });
    expect([answer.status, answer.headers['content-type']]).toEqual([201, 'application/scim+json; charset=utf-8']);
    const user = answer.json as unknown as ScimUser;
    expect(answer.headers['location']).toBe(user.meta.location);
    expect(user.meta.location).toBe(`${world.issuer}/scim/v2/Users/${user.id}`);
    expect(answer.headers['etag']).toBe(user.meta.version);
    const { id, meta, schemas, ...sent } = user;
    expect(sent).toEqual(whole(userName));
    expect(schemas).toEqual([USER, ENTERPRISE]);
    expect(meta).toMatchObject({ resourceType: 'User', version: 'W/"1"' });
    expect(await directory.read(id)).toEqual(user);

    const replaced = await directory.send('PUT', `/Users/${id}`, {
      schemas: [USER],
      userName,
      displayName: 'Barbara',
      emails: null,
      roles: [],
    });
    expect([
      replaced.status,
      replaced.json['displayName'],
      replaced.json['name'],
      replaced.json['emails'],
      replaced.json[ENTERPRISE],
    ]).toEqual([200, 'Barbara', undefined, undefined, undefined]);
    expect((await directory.patch(id, { op: 'replace', path: 'name.familyName', value: 'J.' })).json['name']).toEqual({ familyName: 'J.' });
    expect(await directory.found(`userName eq "${userName.toUpperCase()}"`)).toEqual([userName]);
    expect((await directory.send('DELETE', `/Users/${id}`)).status).toBe(204);
    expect((await directory.send('GET', `/Users/${id}`)).status).toBe(404);
  });

  test('IDN-020 needs scim:read to read and scim:write to change', async () => {
    const { id } = await directory.create({ userName: name() });
    const reader = await Directory.open(world, 'scim:read');
    const writer = new Directory(world, { persona: as.machine('bff-delegator', 'scim:write', 'scim:read') });
    const nobody = await Directory.open(world, 'auth:users:admin');
    expect((await reader.send('GET', `/Users/${id}`)).status).toBe(200);
    for (const [method, path, body] of [
      ['POST', '/Users', { schemas: [USER], userName: name() }],
      ['PUT', `/Users/${id}`, { schemas: [USER], userName: name() }],
      ['PATCH', `/Users/${id}`, {}],
      ['DELETE', `/Users/${id}`, undefined],
      ['POST', '/Bulk', {}],
    ] as const) {
      const refused = await reader.send(method, path, body);
      expect([method, refused.status, refused.json['status']]).toEqual([method, 403, '403']);
      expect((await nobody.send(method, path, body)).status).toBe(403);
    }
    // A workload names the directory it means: without one it does not fall into the system's.
    expect((await writer.send('POST', '/Users', { schemas: [USER], userName: name() })).status).toBe(400);
    expect((await writer.send('POST', `/Users?target_env_id=${SYSTEM.envId}`, { schemas: [USER], userName: name() })).status).toBe(201);
    // Whoever may write, and shows a token for reading, reads.
    const narrowed = directory.narrowed('scim:read');
    expect([(await narrowed.send('GET', `/Users/${id}`)).status, (await narrowed.send('DELETE', `/Users/${id}`)).status]).toEqual([
      200, 403,
    ]);
    expect((await directory.narrowed('scim:write').send('DELETE', `/Users/${id}`)).status).toBe(204);
    expect((await world.host.fetch('/scim/v2/Users')).status).toBe(401);
  });

  test('keeps the people of one environment; names are unique within it', async () => {
    const envId = await world.environment(`auth.scim.acme.localhost`);
    const there = new Directory(world, { persona: as.machine('bff-delegator', 'scim:write', 'scim:read'), envId });
    const userName = name();
    const here = await directory.create({ userName });
    const other = await there.create({ userName });
    expect((await there.send('GET', `/Users/${here.id}`)).status).toBe(404);
    expect((await directory.send('DELETE', `/Users/${other.id}`)).status).toBe(404);
    expect((await directory.send('GET', `/Users/${here.id}`, undefined, { 'x-platform-target-env-id': envId })).status).toBe(403);
    for (const [method, path] of [
      ['POST', '/Users'],
      ['PUT', `/Users/${(await directory.create({ userName: name() })).id}`],
    ] as const) {
      const twice = await directory.send(method, path, { schemas: [USER], userName: userName.toUpperCase() });
      expect([method, twice.status, twice.json['scimType']]).toEqual([method, 409, 'uniqueness']);
    }
    const nowhere = await new Directory(world, {
      persona: as.machine('bff-delegator', 'scim:read'),
      envId: '018f0000-0000-7000-8000-00000000eeee',
    }).send('GET', '/Users');
    expect(nowhere.status).toBe(404);
  });

  test('of twelve that create one name at once, one does', async () => {
    const userName = name();
    const answers = await Promise.all(Array.from({ length: 12 }, () => directory.send('POST', '/Users', { schemas: [USER], userName })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 11 }, () => 409)]);
  });

  test('sees people who came by themselves, and what others change has a new version', async () => {
    const email = name();
    const id = await world.person(email);
    const seen = await directory.read(id);
    expect(seen).toMatchObject({
      userName: email,
      displayName: email.split('@')[0],
      emails: [{ value: email, primary: true }],
      active: true,
    });
    expect(await directory.found(`emails.value eq "${email}"`)).toEqual([email]);
    await world.host.by(as.user('auth:users:admin')).disableUser({ params: { user_id: id } });
    const closed = await directory.read(id);
    expect([closed['active'], closed.meta.version]).toEqual([false, 'W/"2"']);
  });
});

describe('an account of a directory', () => {
  test('without a password is opened by a mail, and then signs in', async () => {
    const email = name();
    await directory.create({ userName: `u-${email}`, emails: [{ value: email }] });
    const [mail] = await world.mails(email);
    expect(mail?.subject).toBe('Choose a password for your account');
    const password = 'a sentence of my own';
    expect((await world.browser().post('/v1/password/reset', { token: await world.token(email), password })).status).toBe(200);
    expect((await world.browser().post('/v1/sign-in', { email, password, oauth: {} })).json['status']).toBe('ok');
  });

  test('with a password needs no mail; a weak one is refused, and none is ever told', async () => {
    const email = name();
    const weak = await directory.send('POST', '/Users', { schemas: [USER], userName: email, password: 'password' });
    expect([weak.status, weak.json['scimType']]).toEqual([400, 'invalidValue']);
    const user = await directory.create({ userName: email, password: 'a sentence of theirs' });
    expect(user).not.toHaveProperty('password');
    expect(await world.mails(email)).toEqual([]);
    const signIn = async (password: string) => (await world.browser().post('/v1/sign-in', { email, password, oauth: {} })).json;
    expect((await signIn('a sentence of theirs'))['status']).toBe('verification_required');
    await directory.patch(user.id, { op: 'replace', path: 'password', value: 'another sentence of theirs' });
    expect((await signIn('a sentence of theirs'))['code']).toBe('invalid_credentials');
    expect((await signIn('another sentence of theirs'))['status']).toBe('verification_required');
    const sensitive = await directory.send('GET', `/Users?filter=${encodeURIComponent('password sw "a"')}`);
    expect([sensitive.status, sensitive.json['scimType']]).toEqual([400, 'sensitive']);
  });

  test('without any address signs in by its name, and its tokens claim no address', async () => {
    const userName = `bjensen-${(count += 1)}`;
    const user = await directory.create({ userName, password: 'a sentence of theirs' });
    expect(user['emails']).toBe(undefined);
    const { access_token } = await world.tokens(world.browser(), userName, 'a sentence of theirs');
    expect(Object.keys(claimsOf(access_token)).filter(claim => claim.startsWith('email'))).toEqual([]);
    expect(await world.mails(userName)).toEqual([]);
  });

  test('that is set inactive ends its sessions with the event in the same transaction, and nobody signs in', async () => {
    const email = name();
    const id = await world.person(email);
    const tokens = await world.tokens(world.browser(), email);
    const patched = await directory.patch(id, { op: 'Replace', path: 'active', value: 'False' });
    expect([patched.status, patched.json['active']]).toEqual([200, false]);
    expect((await world.refresh(tokens.refresh_token)).json['error']).toBe('invalid_grant');
    const ended = (await world.host.events('platform:auth:session:revoked')).find(({ payload }) => payload['user_id'] === id);
    expect(ended?.payload['reason']).toBe('admin');
    await world.audited('auth.user.disabled', id);
    expect((await world.browser().post('/v1/sign-in', { email, password: 'x', oauth: {} })).status).toBe(401);
    // A PUT that says nothing of it opens nothing.
    expect((await directory.send('PUT', `/Users/${id}`, { schemas: [USER], userName: email })).json['active']).toBe(false);
    await world.sql`alter table outbox add constraint full_up check (event_type <> 'platform:auth:user:updated') not valid`;
    expect((await directory.patch(id, { op: 'replace', path: 'active', value: true })).status).toBe(500);
    await world.sql`alter table outbox drop constraint full_up`;
    expect((await directory.read(id))['active']).toBe(false);
  });

  test('that moves to another address proves it anew, and old links are void', async () => {
    const email = name();
    const id = await world.person(email);
    await world.browser().post('/v1/password/reset-request', { email });
    const old = await world.token(email);
    const next = name();
    await directory.patch(id, { op: 'replace', path: 'emails', value: [{ value: next, primary: true }] });
    const [row] = await world.sql<
      { email: string; email_verified: boolean }[]
    >`select email, email_verified from users where user_id = ${id}`;
    expect(row).toMatchObject({ email: next, email_verified: false });
    expect((await world.browser().post('/v1/password/reset', { token: old, password: 'one more good sentence' })).status).toBe(410);
    expect((await world.mails(next)).map(({ subject }) => subject)).toEqual(['Confirm your e-mail address']);
  });

  test('nobody closes or deletes the own one', async () => {
    const self = await Directory.open(world, 'scim:write', 'scim:read');
    const id = self.userId;
    expect((await self.patch(id, { op: 'replace', path: 'active', value: false })).status).toBe(403);
    expect((await self.send('DELETE', `/Users/${id}`)).status).toBe(409);
    expect((await directory.read(id))['active']).toBe(true);
  });
});

describe('versions', () => {
  test('a change that was made for another version is refused; what is known is not sent again', async () => {
    const user = await directory.create({ userName: name() });
    const first = user.meta.version;
    expect((await directory.send('GET', `/Users/${user.id}`, undefined, { 'if-none-match': first })).status).toBe(304);
    const changed = await directory.send(
      'PATCH',
      `/Users/${user.id}`,
      { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [{ op: 'add', path: 'title', value: 'Dr' }] },
      { 'if-match': first },
    );
    expect([changed.status, changed.headers['etag']]).toEqual([200, 'W/"2"']);
    expect((await directory.send('GET', `/Users/${user.id}`, undefined, { 'if-none-match': first })).status).toBe(200);
    for (const [method, body] of [
      ['PUT', { schemas: [USER], userName: user.userName }],
      ['PATCH', { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [{ op: 'remove', path: 'title' }] }],
      ['DELETE', undefined],
    ] as const) {
      const stale = await directory.send(method, `/Users/${user.id}`, body, { 'if-match': first });
      expect([method, stale.status, stale.json['status']]).toEqual([method, 412, '412']);
    }
    // What changes nothing is no change.
    expect((await directory.patch(user.id, { op: 'replace', path: 'title', value: 'Dr' })).headers['etag']).toBe('W/"2"');
    const racing = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        directory.send(
          'PATCH',
          `/Users/${user.id}`,
          {
            schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
            Operations: [{ op: 'replace', path: 'title', value: `t${index}` }],
          },
          { 'if-match': 'W/"2"' },
        ),
      ),
    );
    expect(racing.filter(({ status }) => status === 200)).toHaveLength(1);
  });
});

describe('bulk', () => {
  test('runs in order, each for itself; an earlier one is named by its bulkId', async () => {
    const [boss, worker] = [name(), name()];
    const { status, json } = await directory.bulk([
      { method: 'POST', path: '/Users', bulkId: 'boss', data: { schemas: [USER], userName: boss } },
      {
        method: 'POST',
        path: '/Users',
        bulkId: 'worker',
        data: { schemas: [USER, ENTERPRISE], userName: worker, [ENTERPRISE]: { manager: { value: 'bulkId:boss' } } },
      },
      { method: 'POST', path: '/Users', bulkId: 'again', data: { schemas: [USER], userName: boss } },
      {
        method: 'PATCH',
        path: '/Users/bulkId:worker',
        data: { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [{ op: 'add', path: 'title', value: 'Guide' }] },
      },
      { method: 'DELETE', path: '/Users/bulkId:nobody' },
    ]);
    const operations = json['Operations'] as { status: string; location?: string; version?: string; response?: { scimType?: string } }[];
    expect([status, operations.map(each => each.status)]).toEqual([200, ['201', '201', '409', '200', '409']]);
    expect(operations[2]?.response?.scimType).toBe('uniqueness');
    const [bossId, workerId] = operations.map(each => each.location?.split('/').at(-1));
    const made = await directory.read(workerId as string);
    expect([made['title'], made[ENTERPRISE]]).toEqual(['Guide', { manager: { value: bossId } }]);
  });

  test('stops after as many failures as it was told, and is bounded', async () => {
    const bad = { method: 'DELETE', path: '/Users/018f0000-0000-7000-8000-00000000dead' };
    const { json } = await directory.bulk([bad, bad, bad], { failOnErrors: 2 });
    expect((json['Operations'] as object[]).length).toBe(2);
    expect((await directory.bulk(Array.from({ length: 101 }, () => bad))).status).toBe(413);
    expect((await directory.send('POST', '/Bulk', `"${'x'.repeat(1_048_576)}"`)).status).toBe(413);
  });
});

describe('what the service says of itself', () => {
  test('configuration, schemas and resource types', async () => {
    const config = (await directory.send('GET', '/ServiceProviderConfig')).json;
    expect(config).toMatchObject({
      patch: { supported: true },
      bulk: { supported: true, maxOperations: 100, maxPayloadSize: 1_048_576 },
      filter: { supported: true, maxResults: 200 },
      sort: { supported: true },
      etag: { supported: true },
    });
    const schemas = (await directory.send('GET', '/Schemas')).json;
    expect([schemas['totalResults'], (schemas['Resources'] as { id: string }[]).map(({ id }) => id)]).toEqual([2, [USER, ENTERPRISE]]);
    expect((await directory.send('GET', `/Schemas/${ENTERPRISE}`)).json).toMatchObject({ id: ENTERPRISE });
    expect((await directory.send('GET', '/ResourceTypes/User')).json).toMatchObject({
      endpoint: '/Users',
      schema: USER,
      schemaExtensions: [{ schema: ENTERPRISE, required: false }],
    });
    expect((await directory.send('GET', '/Schemas/urn:nothing')).status).toBe(404);
  });
});

test('G-K-03 a person is created once for an Idempotency-Key, and so is what a bulk creates', async () => {
  const userName = name();
  const bulk = {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkRequest'],
    Operations: [{ method: 'POST', path: '/Users', bulkId: 'one', data: { schemas: [USER], userName: name() } }],
  };
  for (const [path, body] of [
    ['/Users', { schemas: [USER], userName }],
    ['/Bulk', bulk],
  ] as const) {
    const send = () => directory.send('POST', path, body, { 'idempotency-key': `once${path}` });
    const first = await send();
    const again = await send();
    expect([again.status, again.json, again.headers['idempotent-replay']]).toEqual([first.status, first.json, 'true']);
  }
  expect((await directory.send('POST', '/Users', { schemas: [USER], userName })).status).toBe(409);
});
