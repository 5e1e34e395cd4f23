import { createHash, randomBytes } from 'node:crypto';
import { hash } from '@node-rs/argon2';
import { newId } from '@platform/kernel/base/ids';
import { AccessClosures } from '@platform/kernel/identity/tokens/access-closure';
import { KeySet } from '@platform/kernel/identity/tokens/key-set';
import { Verifier } from '@platform/kernel/identity/tokens/verifier';
import { SYSTEM } from '@platform/sdk';
import { as, TokenMint } from '@platform/testing';
import { Passwords } from '../../../plugins/identity/src/people/passwords.ts';
import { type Answer, IdentityServer } from '../load/identity-server.ts';
import { median, type Row, type Size } from '../row.ts';

const AT_ONCE = 16;
interface Counts {
  readonly tokens: number;
  readonly flows: number;
  readonly signIns: number;
  readonly environments: number;
}
const COUNTS: Readonly<Record<Size, Counts>> = {
  short: { tokens: 1_000, flows: 60, signIns: 60, environments: 100 },
  long: { tokens: 4_000, flows: 400, signIns: 300, environments: 1_000 },
};
const PEOPLE = 400;
const VERIFICATIONS = 200_000;
const PASSWORD = 'a sentence nobody has guessed';
/** Hashes in microseconds, and is no hash that a sign-in would renew: one pass more than a password of today gets. */
const NO_COST = { algorithm: 2 /* argon2id */, memoryCost: 8, timeCost: 3, parallelism: 1 } as const;
const CALLBACK = 'https://bff.console.ops.sys.localhost:8443/auth/callback';

/** Tokens, whole sign-ins and verification; «per core» is per CPU second of the serving process with all its threads. */
export async function* identityRows(size: Size): AsyncGenerator<Row> {
  const of = COUNTS[size];
  {
    await using server = await IdentityServer.start();
    yield await environments(server, of);
  }
  {
    // Beside a thousand environments every collection reads what they keep.
    await using server = await IdentityServer.start();
    yield {
      name: 'client credentials over mutual TLS, Ed25519, per core',
      value: await clientCredentials(server, of),
      unit: '/s',
      atLeast: 3_000,
    };
    yield* await signIns(server, of);
  }
  {
    await using server = await IdentityServer.start({ PLATFORM_AUTH_INTERNAL_TOKEN_ALG: 'ML-DSA-65' });
    yield {
      name: 'client credentials over mutual TLS, ML-DSA-65, per core',
      value: await clientCredentials(server, of),
      unit: '/s',
      atLeast: 800,
    };
  }
  yield {
    name: 'verification of a token in a service, cached by token, per core',
    value: await verifications(),
    unit: '/s',
    atLeast: 30_000,
    note: 'access model and revocations answered in the process',
  };
}

/** Microseconds of the server's CPU a call, and of them its pool threads: medians of three rounds after one to warm up. */
async function costOf(
  server: IdentityServer,
  count: number,
  work: (turn: number) => Promise<void>,
): Promise<{ us: number; workersUs: number }> {
  const [all, workers]: [number[], number[]] = [[], []];
  for (let round = 0; round <= 3; round++) {
    const before = await server.usage();
    let next = 0;
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (next < count) await work(next++);
      }),
    );
    const after = await server.usage();
    if (round === 0) continue;
    all.push((after.cpuUs - before.cpuUs) / count);
    workers.push(((after.workersUs ?? Number.NaN) - (before.workersUs ?? Number.NaN)) / count);
  }
  return { us: median(all), workersUs: median(workers) };
}

/** Calls per CPU second of the server. */
async function perCore(server: IdentityServer, count: number, work: (turn: number) => Promise<void>): Promise<number> {
  return 1e6 / (await costOf(server, count, work)).us;
}

function clientCredentials(server: IdentityServer, { tokens }: Counts): Promise<number> {
  return perCore(server, tokens, async () => {
    ok(await server.form('bff', '/mtls/oauth/token', { grant_type: 'client_credentials', client_id: 'bff' }));
  });
}

/**
 * The gateway's sign-in of a person, from the pushed request to the tokens: of people whose hash costs nothing, and of people as they are,
 * where the hash runs on threads of its own, whose time is taken out. There it takes the caches from the rest too.
 */
async function signIns(server: IdentityServer, { flows, signIns: attempts }: Counts): Promise<Row[]> {
  const passwords = new Passwords();
  const costly = await passwords.hash(PASSWORD);
  const people = await seedPeople(server, costly);
  const unhashed = await seedPeople(server, await hash(PASSWORD, NO_COST));
  const aloneUs = await cpuOf(40, () => passwords.verify(costly, PASSWORD));
  let turn = 0;
  const next = (among: readonly string[]) => among[turn++ % among.length] as string;
  const without = await costOf(server, flows, () => flow(server, next(unhashed)));
  await forget(server);
  const whole = await costOf(server, flows, () => flow(server, next(people)));
  await forget(server);
  const signed = await costOf(server, attempts, async () => {
    ok(await signIn(server, next(people), {}));
  });
  const said = ({ us, workersUs }: typeof whole) =>
    `${Math.round(us)} µs, of it ${Math.round(workersUs)} µs argon2id; a lone hash takes ${Math.round(aloneUs)} µs`;
  return [
    {
      name: 'code flow from pushed request to tokens, audit and events included, without the hash, per core',
      value: 1e6 / without.us,
      unit: '/s',
      atLeast: 200,
      note: `${Math.round(without.us)} µs`,
    },
    {
      name: 'the same with the hash of a password of today, its threads taken out, per core',
      value: 1e6 / (whole.us - whole.workersUs),
      unit: '/s',
      note: said(whole),
    },
    {
      name: 'sign-in: share of CPU that is not argon2id',
      value: ((signed.us - signed.workersUs) / signed.us) * 100,
      unit: '%',
      limit: 35,
      note: said(signed),
    },
  ];
}

async function flow(server: IdentityServer, email: string): Promise<void> {
  const verifier = randomBytes(32).toString('base64url');
  const pushed = ok(
    await server.form('bff', '/mtls/oauth/par', {
      client_id: 'console',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email profile',
      state: 's',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }),
  );
  const requestUri = String((JSON.parse(pushed.text) as { request_uri: string }).request_uri);
  const cookies = new Map<string, string>();
  const browse = async (path: string) => {
    const answer = await server.send('proxy', path, { method: 'GET', hostname: server.host, headers: { cookie: cookieOf(cookies) } });
    keep(cookies, answer);
    return String(answer.headers['location']);
  };
  const page = new URL(
    await browse(`/oauth/authorize?${new URLSearchParams({ client_id: 'console', request_uri: requestUri })}`),
    'https://a',
  );
  const signed = ok(
    await signIn(
      server,
      email,
      Object.fromEntries(page.searchParams.entries().filter(([name]) => ['client_id', 'state', 'uid'].includes(name))),
      cookieOf(cookies),
    ),
  );
  keep(cookies, signed);
  const landed = new URL(await browse(String((JSON.parse(signed.text) as { next: string }).next)));
  const code = landed.searchParams.get('code') as string;
  ok(
    await server.form('bff', '/mtls/oauth/token', {
      grant_type: 'authorization_code',
      client_id: 'console',
      code,
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    }),
  );
}

function signIn(server: IdentityServer, email: string, oauth: object, cookie = ''): Promise<Answer> {
  return server.send('proxy', '/v1/sign-in', {
    hostname: server.host,
    headers: { 'content-type': 'application/json', origin: `https://${server.host}:8443`, ...(cookie ? { cookie } : {}) },
    body: JSON.stringify({ email, password: PASSWORD, oauth }),
  });
}

async function seedPeople({ tables }: IdentityServer, stored: string): Promise<string[]> {
  const ids = Array.from({ length: PEOPLE }, () => newId());
  await tables.sql`insert into users (user_id, env_id, email, email_ci, email_verified)
    select id, ${SYSTEM.envId}, id || '@example.org', id || '@example.org', true from unnest(${ids}::uuid[]) id`;
  await tables.sql`insert into passwords (user_id, hash) select id, ${stored} from unnest(${ids}::uuid[]) id`;
  return ids.map(id => `${id}@example.org`);
}

/** What the flows left is not what the next row measures. */
async function forget({ tables }: IdentityServer): Promise<void> {
  await tables.sql`delete from oidc_state`;
}

async function environments(server: IdentityServer, { environments: count }: Counts): Promise<Row> {
  const ids = Array.from({ length: count }, () => newId());
  await server.tables
    .sql`insert into realms (env_id, org_id, host) select id, id, 'auth.' || id || '.localhost' from unnest(${ids}::uuid[]) id`;
  const { rss: before } = await server.usage();
  for (const id of ids)
    ok(await server.send('proxy', '/.well-known/openid-configuration', { method: 'GET', hostname: `auth.${id}.localhost` }));
  const { rss: after } = await server.usage();
  return {
    name: `memory added by ${count.toLocaleString('en')} environments that are signed in to`,
    value: (after - before) / 2 ** 20,
    unit: 'MB',
    limit: 200,
  };
}

async function verifications(): Promise<number> {
  const mint = new TokenMint();
  const closures = new AccessClosures({
    live: async versions => ({ versions: versions.map(() => '1'), revoked: false }),
    personScopes: async () => ['sys:read'],
    workload: async () => undefined,
  });
  const verifier = new Verifier({
    keys: new KeySet(async () => mint.jwks),
    closures,
    workloads: () => undefined,
    issuers: async () => as.user().envId,
    possession: async () => undefined,
  });
  const tokens = Array.from({ length: 500 }, () => `Bearer ${mint.token(as.user('sys:read'), 'sys')}`);
  let turn = 0;
  const us = await cpuOf(VERIFICATIONS, () =>
    verifier.verify({ authorization: tokens[turn++ % tokens.length] as string, peer: undefined, service: 'sys', tenantEnvId: undefined }),
  );
  return 1e6 / us;
}

/** Microseconds of this process's CPU per call; the first tenth warms up. */
async function cpuOf(count: number, work: () => Promise<unknown>): Promise<number> {
  for (let turn = 0; turn < count / 10; turn++) await work();
  const before = process.cpuUsage();
  for (let turn = 0; turn < count; turn++) await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

function ok(answer: Answer): Answer {
  if (answer.status >= 400) throw new Error(`answered ${answer.status} ${answer.text}`);
  return answer;
}

const cookieOf = (cookies: ReadonlyMap<string, string>) => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');

function keep(cookies: Map<string, string>, { headers }: Answer): void {
  for (const line of [headers['set-cookie'] ?? []].flat()) {
    const [pair = ''] = line.split(';');
    const at = pair.indexOf('=');
    if (pair.length > at + 1) cookies.set(pair.slice(0, at), pair.slice(at + 1));
  }
}
