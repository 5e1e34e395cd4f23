import { SignJWT, calculateJwkThumbprint, exportJWK, generateKeyPair } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { newId } from '@platform/testing';
import { appStore, application, register } from '../fixtures/applications.ts';
import type { Browser } from '../fixtures/browser.ts';
import { type Answer, CALLBACK, CHOSEN, claimsOf, type Tokens, World } from '../fixtures/world.ts';

const HOST = 'auth.prod.once.localhost';
const ADA = 'ada@example.org';
let world: World;
let second: World['host'];
let tenant: string;
let ada: string;
let staffToken: string;
beforeAll(async () => {
  world = await World.start({ contracts: [appStore] });
  second = await world.another();
  await world.person(ADA);
  tenant = await world.environment(HOST);
  ada = await world.person(ADA, { envId: tenant });
  staffToken = (await world.tokens(world.browser(), ADA)).access_token;
});
afterAll(async () => {
  await second[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});
beforeEach(() => world.forgetTries());

/** Twelve at once, turn by turn on either process. */
const twelve = (work: (at: World['host'], index: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: 12 }, (_, index) => work(index % 2 === 0 ? world.host : second, index)));
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort();
const once = (status: number, refused: number) => [status, ...Array.from({ length: 11 }, () => refused)].sort();
const signedIn = async (): Promise<Browser> => {
  const browser = world.browser(HOST);
  await browser.post('/v1/sign-in', { email: ADA, password: CHOSEN, oauth: {} });
  return browser;
};
const form = (body: Record<string, string>) => ({ method: 'POST', host: HOST, body: new URLSearchParams(body).toString() });
const urlencoded = { 'content-type': 'application/x-www-form-urlencoded' };
/** A DPoP proof for the token endpoint (RFC 9449). */
const prover = async (htu = `https://${HOST}:8443/mtls/oauth/token`) => {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwk = await exportJWK(publicKey);
  return (jti = newId()) =>
    new SignJWT({ htm: 'POST', htu, jti }).setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk }).setIssuedAt().sign(privateKey);
};

/** A client without a browser. */
const television = async () => {
  const grant = 'urn:ietf:params:oauth:grant-type:device_code';
  const config = await application(world, { grant_types: [grant], redirect_uris: [], token_endpoint_auth_method: 'none' }, HOST);
  const { client_id: clientId } = config.clientMetadata();
  return {
    start: () => world.reach('/oauth/device_authorization', { ...form({ client_id: clientId, scope: 'openid' }), headers: urlencoded }),
    redeem: (code: string, at: World['host'], headers = {}) =>
      world.reach('/oauth/token', {
        ...form({ grant_type: grant, client_id: clientId, device_code: code }),
        headers: { ...urlencoded, ...headers },
        at,
      }),
  };
};

describe('of twelve at once on two processes one succeeds', () => {
  test('H-13 with an authorization code', async () => {
    const { code, verifier } = await world.signIn(world.browser(), ADA);
    const answers = await twelve(at =>
      world.mtls(
        '/mtls/oauth/token',
        {
          grant_type: 'authorization_code',
          client_id: 'console',
          code,
          code_verifier: verifier,
          redirect_uri: 'https://bff.console.ops.sys.localhost:8443/auth/callback',
        },
        'bff',
        { at },
      ),
    );
    expect(statuses(answers)).toEqual(once(200, 400));
  });

  test('H-13 with a pushed request', async () => {
    const browser = world.browser();
    await world.signIn(browser, ADA);
    const { requestUri } = await world.push();
    const cookie = [...browser.cookies.values()].map(({ name, value }) => `${name}=${value}`).join('; ');
    const path = `/oauth/authorize?${new URLSearchParams({ client_id: 'console', request_uri: requestUri })}`;
    const answers = await twelve(at => world.reach(path, { at, headers: { cookie } }));
    expect(answers.filter(({ headers }) => String(headers['location']).includes('code='))).toHaveLength(1);
    expect(answers.filter(({ headers }) => String(headers['location']).includes('error=invalid_request_uri'))).toHaveLength(11);
  });

  test('H-13 with a refresh token', async () => {
    const { refresh_token: token } = await world.tokens(world.browser(), ADA);
    const answers = await twelve(at =>
      world.mtls('/mtls/oauth/token', { grant_type: 'refresh_token', client_id: 'console', refresh_token: token }, 'bff', { at }),
    );
    expect(statuses(answers)).toEqual(once(200, 400));
  });

  test('H-13 with a proof of possession', async () => {
    // Twelve codes, one proof: each code is good, the proof once.
    const device = await television();
    const codes: string[] = [];
    for (let turn = 0; turn < 12; turn++) {
      const started = await device.start();
      const browser = await signedIn();
      await browser.post('/v1/device/decision', { user_code: started.json['user_code'], decision: 'approve' });
      codes.push(String(started.json['device_code']));
      await world.forgetTries();
    }
    const proof = await (await prover(`https://${HOST}:8443/oauth/token`))();
    const answers = await twelve((at, index) => device.redeem(codes[index] as string, at, { dpop: proof }));
    expect(statuses(answers)).toEqual(once(200, 400));
  });

  test('H-13 with an initial access token', async () => {
    const token = await world.machineToken('app');
    const answers = await twelve(at => register(world, { redirect_uris: ['https://a.example.org/'] }, { host: HOST, token, at }));
    expect(statuses(answers)).toEqual(once(201, 401));
  });

  test('H-13 with a client assertion', async () => {
    const { publicKey, privateKey } = await generateKeyPair('EdDSA');
    const jwk = await exportJWK(publicKey);
    const kid = await calculateJwkThumbprint(jwk);
    const config = await application(
      world,
      { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ ...jwk, kid, alg: 'EdDSA' }] } },
      HOST,
    );
    const { client_id: clientId } = config.clientMetadata();
    const assertion = await new SignJWT({ jti: newId() })
      .setProtectedHeader({ alg: 'EdDSA', kid })
      .setIssuer(clientId)
      .setSubject(clientId)
      .setAudience(`https://${HOST}:8443`)
      .setIssuedAt()
      .setExpirationTime('60s')
      .sign(privateKey);
    const push = {
      client_id: clientId,
      client_assertion: assertion,
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      response_type: 'code',
      redirect_uri: 'https://app.example.org/callback',
      scope: 'openid',
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
    };
    const answers = await twelve(at => world.reach('/oauth/par', { ...form(push), headers: urlencoded, at }));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 400 || status === 401)).toHaveLength(11);
  });

  test('H-13 with a device code, and with the decision about it', async () => {
    const device = await television();
    const started = await device.start();
    const browser = await signedIn();
    const cookie = [...browser.cookies.values()].map(({ name, value }) => `${name}=${value}`).join('; ');
    const decision = JSON.stringify({ user_code: started.json['user_code'], decision: 'approve' });
    await world.forgetTries();
    const decided = await Promise.all(
      Array.from({ length: 9 }, (_, index) =>
        world.reach('/v1/device/decision', {
          method: 'POST',
          host: HOST,
          at: index % 2 === 0 ? world.host : second,
          body: decision,
          headers: { cookie, origin: browser.origin },
        }),
      ),
    );
    expect(statuses(decided)).toEqual([200, ...Array.from({ length: 8 }, () => 404)]);
    const answers = await twelve(at => device.redeem(String(started.json['device_code']), at));
    expect(statuses(answers)).toEqual(once(200, 400));
  });

  test('H-13 the one who took a device code has its token, though a second use ends the grant at that very moment', async () => {
    const device = await television();
    const started = await device.start();
    await (await signedIn()).post('/v1/device/decision', { user_code: started.json['user_code'], decision: 'approve' });
    await world.sql`
      create function second_use() returns trigger language plpgsql as $$
      begin
        delete from oidc_state where model = 'Grant' and env_id = new.env_id and id_hash = sha256(convert_to(new.grant_id, 'UTF8'));
        return new;
      end $$`;
    await world.sql`create trigger second_use after update of consumed_at on oidc_state for each row
      when (new.model = 'DeviceCode') execute function second_use()`;
    try {
      expect(await device.redeem(String(started.json['device_code']), world.host)).toMatchObject({ status: 200 });
    } finally {
      await world.sql`drop function second_use cascade`;
    }
  });

  test('H-13 with a CIBA request, and with the decision about it', async () => {
    const begun = await world.mtls(
      '/mtls/oauth/bc-authorize',
      { client_id: 'bff-delegator', scope: 'openid', login_hint: ada, actor_token: staffToken },
      'bff-delegator',
      { host: HOST },
    );
    const id = String(begun.json['auth_req_id']);
    const browser = await signedIn();
    const cookie = [...browser.cookies.values()].map(({ name, value }) => `${name}=${value}`).join('; ');
    const decided = await twelve(at =>
      world.reach(`/v1/ciba/${id}/decision`, {
        method: 'POST',
        host: HOST,
        at,
        body: JSON.stringify({ decision: 'approve' }),
        headers: { cookie, origin: browser.origin },
      }),
    );
    expect(statuses(decided)).toEqual(once(200, 404));
    const prove = await prover();
    const proofs = await Promise.all(Array.from({ length: 12 }, () => prove()));
    const answers = await twelve((at, index) =>
      world.mtls(
        '/mtls/oauth/token',
        { grant_type: 'urn:openid:params:grant-type:ciba', client_id: 'bff-delegator', auth_req_id: id },
        'bff-delegator',
        {
          host: HOST,
          at,
          headers: { dpop: proofs[index] as string },
        },
      ),
    );
    expect(statuses(answers)).toEqual(once(200, 400));
  });
});

describe('what was given for a code that comes twice', () => {
  const active = async (token: string) => (await world.mtls('/mtls/oauth/introspect', { client_id: 'bff', token }, 'bff')).json['active'];
  const marked = (token: string) => world.kv('EXISTS', `revoked:gid:${String(claimsOf(token)['gid'])}`);
  const fields = (code: string, verifier: string) => ({
    grant_type: 'authorization_code',
    client_id: 'console',
    code,
    code_verifier: verifier,
    redirect_uri: CALLBACK,
  });

  test('F-32 ends: the access token at introspection and at verifiers, the refresh token, and no other of the person', async () => {
    const others = await world.tokens(world.browser(), ADA);
    const { code, verifier } = await world.signIn(world.browser(), ADA);
    const first = (await world.redeem(code, verifier)).json as unknown as Tokens;
    expect([await active(first.access_token), await marked(first.access_token)]).toEqual([true, 0]);
    const again = await world.redeem(code, verifier);
    expect([again.status, again.json['error']]).toEqual([400, 'invalid_grant']);
    expect([await active(first.access_token), await marked(first.access_token)]).toEqual([false, 1]);
    expect((await world.refresh(first.refresh_token)).json['error']).toBe('invalid_grant');
    expect([await active(others.access_token), (await world.refresh(others.refresh_token)).status]).toEqual([true, 200]);
    await world.audited('auth.grant.revoked', String(claimsOf(first.access_token)['gid']));
  });

  test('F-32 ends also where the two came at once', async () => {
    const { code, verifier } = await world.signIn(world.browser(), ADA);
    const answers = await twelve(at => world.mtls('/mtls/oauth/token', fields(code, verifier), 'bff', { at }));
    const [won] = answers.filter(({ status }) => status === 200).map(({ json }) => json as unknown as Tokens);
    expect(won).toBeDefined();
    const { access_token: token, refresh_token: refresh } = won as Tokens;
    expect([await active(token), await marked(token), (await world.refresh(refresh)).json['error']]).toEqual([false, 1, 'invalid_grant']);
  });

  test('F-15 of two that refresh with one token at once neither keeps what it got', async () => {
    const first = await world.tokens(world.browser(), ADA);
    const [row] = await world.sql<
      { grant_id: string }[]
    >`select grant_id from oidc_state where model = 'RefreshToken' and id_hash = sha256(convert_to(${first.refresh_token}, 'UTF8'))`;
    const ofGrant = async () =>
      (
        await world.sql<{ model: string }[]>`
        select model from oidc_state where grant_id = ${row?.grant_id ?? ''}
          or (model = 'Grant' and id_hash = sha256(convert_to(${row?.grant_id ?? ''}, 'UTF8'))) order by model`
      ).map(({ model }) => model);
    expect(await ofGrant()).toEqual(expect.arrayContaining(['Grant', 'RefreshToken']));
    const refresh = (at: World['host']) =>
      world.mtls('/mtls/oauth/token', { grant_type: 'refresh_token', client_id: 'console', refresh_token: first.refresh_token }, 'bff', {
        at,
      });
    const answers = await meeting('RefreshToken', () => Promise.all([refresh(world.host), refresh(second)]));
    const won = answers.filter(({ status }) => status === 200).map(({ json }) => json as unknown as Tokens);
    expect(won).toHaveLength(1);
    const [{ access_token: token, refresh_token: next }] = won as [Tokens];
    expect([(await world.refresh(next)).json['error'], await active(token), await marked(token)]).toEqual(['invalid_grant', false, 1]);
    // The grant itself is gone too, not only what came from it: nothing can be asked for by it any more.
    expect(await ofGrant()).toEqual([]);
  });

  /** Both have read the row before either uses it up: the first to come to it waits for the other. */
  const meeting = async <T>(model: string, work: () => Promise<T>): Promise<T> =>
    world
      .tx(async sql => {
        await sql`select 1 from oidc_state where model = ${model} for update`;
        const done = work();
        const waiting = async () => (await world.sql<object[]>`select 1 from pg_stat_activity where wait_event_type = 'Lock'`).length;
        while ((await waiting()) < 2) await new Promise(resolve => setImmediate(resolve));
        return { done };
      })
      .then(({ done }) => done);
});

describe('what cannot be written is not answered', () => {
  const without = async <T>(model: string, work: () => Promise<T>): Promise<T> => {
    await world.statement(`alter table oidc_state add constraint full_up check (model <> '${model}') not valid`);
    try {
      return await work();
    } finally {
      await world.statement('alter table oidc_state drop constraint full_up');
    }
  };

  test('a code that is not kept is not handed out, and the browser keeps its session', async () => {
    const browser = world.browser();
    await world.signIn(browser, ADA);
    const { requestUri } = await world.push();
    const cookie = [...browser.cookies.values()].map(({ name, value }) => `${name}=${value}`).join('; ');
    const path = `/oauth/authorize?${new URLSearchParams({ client_id: 'console', request_uri: requestUri })}`;
    const answer = await without('AuthorizationCode', () => world.reach(path, { headers: { cookie } }));
    expect([answer.status, answer.headers['location'], answer.headers['set-cookie']]).toEqual([
      303,
      '/error?error=server_error',
      undefined,
    ]);
    const again = await world.push();
    const renewed = await world.reach(`/oauth/authorize?${new URLSearchParams({ client_id: 'console', request_uri: again.requestUri })}`, {
      headers: { cookie },
    });
    expect(String(renewed.headers['location'])).toContain('code=');
  });

  test('tokens whose refresh token is not kept are not handed out', async () => {
    const { code, verifier } = await world.signIn(world.browser(), ADA);
    const fields = {
      grant_type: 'authorization_code',
      client_id: 'console',
      code,
      code_verifier: verifier,
      redirect_uri: 'https://bff.console.ops.sys.localhost:8443/auth/callback',
    };
    const answer = await without('RefreshToken', () => world.mtls('/mtls/oauth/token', fields, 'bff'));
    expect([answer.status, answer.json]).toEqual([500, { error: 'server_error', error_description: 'oops! something went wrong' }]);
  });
});
