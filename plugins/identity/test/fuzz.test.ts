import { afterAll, beforeAll, expect, test } from 'vitest';
import { appStore, application } from './fixtures/applications.ts';
import { type Answer, CHOSEN, World } from './fixtures/world.ts';

const HOST = 'auth.prod.fuzz.localhost';
const SEED = Number(process.env['PLATFORM_FUZZ_SEED'] ?? 20_261_121);
const CASES = Number(process.env['PLATFORM_FUZZ_CASES'] ?? 60);
/** Told to the service and to nobody else: no answer may carry it back. */
const SECRET = 'kept-to-ourselves-7f3a9c';

let world: World;
let clientId: string;
let cookie: string;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  await world.person('ada@example.org', { envId: await world.environment(HOST) });
  clientId = (
    await application(world, { grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'] }, HOST)
  ).clientMetadata().client_id;
  const browser = world.browser(HOST);
  await browser.post('/v1/sign-in', { email: 'ada@example.org', password: CHOSEN, oauth: {} });
  cookie = [...browser.cookies.values()].map(({ name, value }) => `${name}=${value}`).join('; ');
});
afterAll(() => world[Symbol.asyncDispose]());

/** A repeatable source of surprises (mulberry32). */
function chance(seed: number) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)] as T;
  return { next, pick, below: (most: number) => Math.floor(next() * most) };
}
type Chance = ReturnType<typeof chance>;

const NAMES = [
  ...[
    'grant_type',
    'client_id',
    'client_secret',
    'code',
    'code_verifier',
    'redirect_uri',
    'refresh_token',
    'device_code',
    'auth_req_id',
    'scope',
    'state',
    'nonce',
    'response_type',
    'resource',
    'audience',
  ],
  ...[
    'subject_token',
    'actor_token',
    'subject_token_type',
    'request',
    'request_uri',
    'claims',
    'prompt',
    'max_age',
    'login_hint',
    'id_token_hint',
    'binding_message',
    'requested_expiry',
    'client_assertion',
  ],
  ...[
    'client_assertion_type',
    'code_challenge',
    'code_challenge_method',
    'response_mode',
    'dpop_jkt',
    'consent_flow',
    'screen_hint',
    'acr_values',
    'authorization_details',
    'user_code',
    '__proto__',
    'constructor',
    '',
  ],
];
const GRANTS = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  'urn:ietf:params:oauth:grant-type:device_code',
  'urn:openid:params:grant-type:ciba',
  'urn:ietf:params:oauth:grant-type:token-exchange',
  'password',
];
const JWT = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{"sub":"x","exp":1e999}').toString('base64url')}.`;
const odd = ({ pick, below }: Chance): string =>
  pick([
    '',
    ' ',
    '\u0000',
    '%',
    '%00',
    '\r\nset-cookie: a=b',
    '../../etc/passwd',
    '<script>alert(1)</script>',
    "' or 1=1 --",
    '\ud800',
    '🜁'.repeat(20),
    'a'.repeat(below(9_000)),
    '{"a":',
    '[]',
    'null',
    '-1',
    '1e999',
    '99999999999999999999',
    'urn:platform:env:x',
    'https://evil.example/#x',
    'S256',
    'plain',
    'code',
    'openid sys:read',
    'none',
    JWT,
    `urn:ietf:params:oauth:request_uri:${'x'.repeat(below(60))}`,
    ...GRANTS,
  ]);
const form = (dice: Chance): string => {
  const fields = new URLSearchParams();
  for (let count = dice.below(9); count > 0; count--) fields.append(dice.pick(NAMES), odd(dice));
  if (dice.next() < 0.7) fields.set('client_id', dice.pick([clientId, 'console', 'bff', 'bff-delegator', odd(dice)]));
  if (dice.next() < 0.6) fields.set('grant_type', dice.pick(GRANTS));
  if (dice.next() < 0.3) fields.set('client_secret', SECRET);
  if (dice.next() < 0.2) fields.append('client_id', 'twice');
  const text = fields.toString();
  return dice.next() < 0.1 ? text.slice(0, dice.below(text.length + 1)) : text;
};
const value = (dice: Chance, depth = 0): unknown =>
  dice.pick<() => unknown>([
    () => odd(dice),
    () => odd(dice),
    () => dice.below(2 ** 31) - 2 ** 30,
    () => null,
    () => true,
    () => (depth > 3 ? [] : Array.from({ length: dice.below(4) }, () => value(dice, depth + 1))),
    () => (depth > 3 ? {} : { [dice.pick(NAMES)]: value(dice, depth + 1) }),
  ])();
const json =
  (members: readonly string[]) =>
  (dice: Chance): string => {
    const body: Record<string, unknown> = {};
    for (const name of members) if (dice.next() < 0.6) body[name] = value(dice);
    if (dice.next() < 0.3) body[dice.pick([...NAMES, 'password'])] = SECRET;
    const text = JSON.stringify(body);
    return dice.next() < 0.1 ? text.slice(0, dice.below(text.length + 1)) : text;
  };

const FORM = 'application/x-www-form-urlencoded';
const METADATA = [
  'redirect_uris',
  'grant_types',
  'response_types',
  'token_endpoint_auth_method',
  'scope',
  'jwks',
  'client_name',
  'client_uri',
  'logo_uri',
  'first_party',
  'application_type',
  'app_instance_id',
  'contacts',
];
const TARGETS: readonly [
  string,
  (dice: Chance) => { path: string; method?: string; type: string; body?: string; workload?: string; token?: Promise<string> },
][] = [
  ['the token endpoint', dice => ({ path: '/oauth/token', type: FORM, body: form(dice) })],
  [
    'the token endpoint over mutual TLS',
    dice => ({ path: '/mtls/oauth/token', type: FORM, body: form(dice), workload: dice.pick(['bff', 'bff-delegator']) }),
  ],
  ['pushed requests', dice => ({ path: '/oauth/par', type: FORM, body: form(dice) })],
  ['authorization', dice => ({ path: `/oauth/authorize?${form(dice)}`, method: 'GET', type: FORM })],
  [
    'registration',
    dice => ({
      path: '/oauth/register',
      type: 'application/json',
      body: json(METADATA)(dice),
      workload: 'app',
      token: world.machineToken('app'),
    }),
  ],
  ['assisted sign-in', dice => ({ path: '/mtls/oauth/bc-authorize', type: FORM, body: form(dice), workload: 'bff-delegator' })],
  ['device authorization', dice => ({ path: '/oauth/device_authorization', type: FORM, body: form(dice) })],
  ['introspection and revocation', dice => ({ path: dice.pick(['/oauth/introspect', '/oauth/revoke']), type: FORM, body: form(dice) })],
  ['sign-in', dice => ({ path: '/v1/sign-in', type: 'application/json', body: json(['email', 'password', 'oauth'])(dice) })],
  [
    'decisions',
    dice => ({
      path: dice.pick([
        '/oauth/authorize/continue',
        '/v1/device/decision',
        `/v1/ciba/${encodeURIComponent(odd(dice).toWellFormed().slice(0, 150)) || 'x'}/decision`,
      ]),
      type: 'application/json',
      body: json(['decision', 'uid', 'user_code', 'consent_flow', 'selected_account_ids'])(dice),
    }),
  ],
  [
    'what the pages ask',
    dice => ({
      path:
        dice.pick(['/v1/consent', '/v1/consent/accounts', '/v1/device']) +
        `?${new URLSearchParams({ client_id: odd(dice), scope: odd(dice), consent_flow: odd(dice), user_code: odd(dice) })}`.slice(
          0,
          7_000,
        ),
      method: 'GET',
      type: FORM,
    }),
  ],
];

/** A stranger's word is never an error of ours, and a secret never comes back. */
test.each(TARGETS)('%s answers whatever comes with a clear refusal', async (name, make) => {
  const dice = chance(SEED + TARGETS.findIndex(([each]) => each === name));
  for (let turn = 0; turn < CASES; turn++) {
    if (turn % 5 === 0) await world.forgetTries();
    const { path, method = 'POST', type, body, workload, token } = make(dice);
    const headers = {
      'content-type': dice.next() < 0.9 ? type : dice.pick(['text/plain', 'application/json', FORM, 'multipart/form-data; boundary=x', '']),
      origin: `https://${HOST}:8443`,
      ...(dice.next() < 0.5 ? { cookie } : {}),
      ...(dice.next() < 0.2 ? { dpop: dice.pick([JWT, 'x', '..', 'a.b.c']) } : {}),
      ...(dice.next() < 0.2 && !token && !path.startsWith('/mtls')
        ? {
            authorization: dice.pick([
              `Basic ${Buffer.from(`${clientId}:${SECRET}`).toString('base64')}`,
              'Basic %',
              `Bearer ${JWT}`,
              'Basic',
              'Bearer',
            ]),
          }
        : {}),
    };
    const answer: Answer = await world.reach(path, {
      method,
      host: HOST,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(workload ? { workload } : {}),
      ...(token ? { token: await token } : {}),
    });
    const told = `${answer.text} ${JSON.stringify(answer.headers)}`;
    expect([turn, answer.status, answer.status < 500 ? '' : answer.text, path.slice(0, 200), body?.slice(0, 300)]).toEqual([
      turn,
      expect.any(Number),
      '',
      path.slice(0, 200),
      body?.slice(0, 300),
    ]);
    expect([turn, told.includes(SECRET)]).toEqual([turn, false]);
    expect(answer.status).toBeGreaterThanOrEqual(200);
  }
});
