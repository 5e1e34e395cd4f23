import { SYSTEM } from '@platform/sdk';
import { beforeEach, describe, expect, test } from 'vitest';
import { PERSON } from '../fixtures/fake-identity.ts';
import { ENV, APP, codeOf, cookieOf, HOST, type World } from '../fixtures/world.ts';

/** How a session begins. */
export function describeSignIn(given: () => World): void {
  describe('signing in', () => {
    let world: World;
    beforeEach(async () => {
      world = given();
    });

    const navigation = { origin: null };
    const begin = (path = '/auth/login?return_to=/%23/orgs') => world.ask('GET', path, navigation);

    describe('a sign-in', () => {
      test("GWY-024 GWY-004 pushes the request with PKCE and sends the browser to the environment's own identity host", async () => {
        const begun = await begin('/auth/login?return_to=/&prompt=login&login_hint=ada@example.com');
        expect([begun.status, cookieOf(begun, 'bff-pkce')]).toEqual([302, expect.stringMatching(/./)]);
        const [pushed] = world.identity.calls;
        expect(pushed).toMatchObject({ path: '/mtls/oauth/par', hostname: 'auth.ops.sys.localhost' });
        expect(pushed?.form).toMatchObject({
          client_id: 'console',
          response_type: 'code',
          redirect_uri: `https://${HOST}:8443/auth/callback`,
          scope: 'openid',
          code_challenge_method: 'S256',
          prompt: 'login',
          login_hint: 'ada@example.com',
        });
        const location = new URL(begun.headers.get('location') as string);
        expect(location.origin + location.pathname).toBe('https://auth.ops.sys.localhost:8443/oauth/authorize');
        expect([...location.searchParams.keys()]).toEqual(['client_id', 'request_uri']);
      });

      test('F-51 tells the identity service by which invitation somebody comes, and nothing that is no reference', async () => {
        const reference = 'x'.repeat(43);
        await begin(`/auth/login?return_to=/&invitation=${reference}`);
        for (const other of ['', 'x', `${reference}x`, `${'x'.repeat(42)}/`]) await begin(`/auth/login?return_to=/&invitation=${other}`);
        expect(world.identity.calls.map(({ form }) => form['invitation'])).toEqual([reference, undefined, undefined, undefined, undefined]);
      });

      test('GWY-018 the verifier travels sealed, for five minutes, and only to /auth', async () => {
        const begun = await begin();
        const cookie = begun.headers.getSetCookie().find(one => one.startsWith('bff-pkce='));
        expect(cookie).toMatch(/; Max-Age=300; Path=\/auth; HttpOnly; Secure; SameSite=None$/);
        const inside = Buffer.from(cookieOf(begun, 'bff-pkce') as string, 'base64url').toString();
        const state = world.identity.calls[0]?.form['state'] as string;
        expect(inside).not.toContain(state);
        expect(Object.keys(JSON.parse(inside) as object).sort()).toEqual(['ct', 'iv', 'kid', 'tag', 'v']);
      });

      test('GWY-002 ends at the page it began from, with cookies of which none is a token', async () => {
        const back = await world.comeBack(await begin());
        expect(back.status).toBe(302);
        expect(back.headers.get('location')).toBe(`${APP}/#/orgs`);
        expect(back.headers.getSetCookie().find(one => one.startsWith('bff-session='))).toMatch(
          /^bff-session=[\w-]{43}; Max-Age=2592000; Domain=console\.ops\.sys\.localhost; Path=\/; HttpOnly; Secure; SameSite=None$/,
        );
        expect(cookieOf(back, 'bff-pkce')).toBe('');
        const headers = { cookie: `bff-session=${cookieOf(back, 'bff-session')}` };
        const answers = [
          back,
          await world.ask('GET', '/auth/session', { headers }),
          await world.ask('GET', '/v1/auth/sessions', { headers }),
        ];
        const shown = (
          await Promise.all(answers.map(async answer => JSON.stringify([...answer.headers]) + (await answer.clone().text())))
        ).join();
        for (const token of world.identity.issued) expect(shown).not.toContain(token);
        expect(world.identity.issued).toHaveLength(3);
      });

      test('a second one in the same browser takes the place of the first', async () => {
        const first = await world.signIn();
        const second = await world.signIn({ cookie: `bff-pkce=x; ${first.cookie}` }).catch(error => error as Error);
        // The cookie header of this helper is given whole, so the verifier of the second sign-in must be in it.
        expect(second).toBeInstanceOf(Error);
        const begun = await begin();
        const back = await world.comeBack(begun, { cookies: `bff-pkce=${cookieOf(begun, 'bff-pkce')}; ${first.cookie}` });
        expect(back.status).toBe(302);
        expect((await world.ask('GET', '/auth/session', { headers: { cookie: first.cookie } })).status).toBe(401);
        expect(world.identity.calls.at(-1)?.path).toBe('/mtls/oauth/revoke');
      });

      test.each(['https://evil.example', '//evil.example', 'orgs'])('return_to %s is 400', async place => {
        const refused = await begin(`/auth/login?return_to=${encodeURIComponent(place)}`);
        expect([refused.status, await codeOf(refused)]).toEqual([400, 'bad_return_to']);
        expect(world.identity.calls).toEqual([]);
      });

      test('more than thirty a minute from one address are 429 with the seconds to wait', async () => {
        for (let count = 0; count < 30; count++) expect((await begin()).status).toBe(302);
        const refused = await begin();
        expect([refused.status, await codeOf(refused)]).toEqual([429, 'rate_limited']);
        expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      });

      test('the console takes no sign-ups, and a host without an application nobody at all', async () => {
        expect(await codeOf(await begin('/auth/sign-up'))).toBe('signup_disabled');
        const elsewhere = await world.ask('GET', '/auth/login', { origin: null, tenant: { envId: SYSTEM.envId } });
        expect([elsewhere.status, await codeOf(elsewhere)]).toEqual([404, 'app_unknown']);
      });

      test('an identity service that is away is 502, without a cookie', async () => {
        world.identity.refusals.set('/mtls/oauth/par', 'down');
        const refused = await begin();
        expect([refused.status, await codeOf(refused)]).toEqual([502, 'identity_unavailable']);
        expect(cookieOf(refused, 'bff-pkce')).toBeUndefined();
      });
    });

    describe('a callback that is in doubt makes no session', () => {
      interface Case {
        readonly what: string;
        readonly query?: Record<string, string>;
        readonly cookies?: string;
        readonly access?: Record<string, unknown>;
        readonly id?: Record<string, unknown>;
        readonly refusal?: { status: number; error?: string } | 'down';
        readonly later?: number;
        readonly answer: [number, string];
        /** Whether tokens had been issued by then, which must not stay good. */
        readonly revokes?: true;
      }
      const cases: Case[] = [
        { what: 'another state', query: { state: 'x' }, answer: [400, 'state_mismatch'] },
        { what: 'no verifier cookie', cookies: 'other=1', answer: [400, 'state_mismatch'] },
        { what: 'a verifier cookie nobody sealed', cookies: 'bff-pkce=eyJ2IjoxfQ', answer: [400, 'state_mismatch'] },
        { what: 'a sign-in that took six minutes', later: 360_000, answer: [400, 'state_mismatch'] },
        { what: 'another issuer (RFC 9207)', query: { iss: 'https://auth.evil.example' }, answer: [401, 'sign_in_refused'] },
        { what: 'a refusal of the identity service', query: { error: 'access_denied' }, answer: [401, 'sign_in_refused'] },
        { what: 'a code that is not good', query: { code: 'x' }, answer: [401, 'sign_in_refused'] },
        { what: 'an identity service that is away', refusal: 'down', answer: [502, 'identity_unavailable'] },
        { what: 'an identity service that fails', refusal: { status: 500 }, answer: [502, 'identity_unavailable'] },
        { what: 'GWY-067 claims without a person', access: { sub: undefined }, answer: [401, 'claims_undecodable'], revokes: true },
        {
          what: 'GWY-067 claims without an environment',
          access: { env_id: undefined },
          answer: [401, 'claims_undecodable'],
          revokes: true,
        },
        { what: 'two tokens about two people', id: { sub: 'somebody-else' }, answer: [401, 'claims_undecodable'], revokes: true },
        { what: 'an id token of another sign-in', id: { nonce: 'x' }, answer: [401, 'claims_undecodable'], revokes: true },
        { what: 'an id token for another client', id: { aud: 'other' }, answer: [401, 'claims_undecodable'], revokes: true },
        { what: 'GWY-068 a person of another environment', access: { auth_env: ENV }, answer: [403, 'auth_env_mismatch'], revokes: true },
      ];
      test.each(cases)(
        'GWY-026 GWY-067 GWY-068 $what: $answer.1',
        async ({ query = {}, cookies, access, id, refusal, later, answer, revokes }) => {
          const begun = await begin();
          Object.assign(world.identity.access, access);
          Object.assign(world.identity.id, id);
          if (refusal) world.identity.refusals.set('authorization_code', refusal);
          if (later !== undefined) world.later(later / 1_000);
          const refused = await world.comeBack(begun, { query, ...(cookies === undefined ? {} : { cookies }) });
          expect([refused.status, await codeOf(refused)]).toEqual(answer);
          expect(cookieOf(refused, 'bff-session')).toBeUndefined();
          expect(cookieOf(refused, 'bff-pkce')).toBe('');
          expect(await world.kv.call('KEYS', 'bff:session:*')).toEqual([]);
          expect(world.identity.calls.filter(({ path }) => path === '/mtls/oauth/revoke')).toHaveLength(revokes ? 1 : 0);
        },
      );

      test.each([
        ['in no group and not invited', [], false, true, 403],
        ["in another application's group", ['shop:buyers'], false, true, 403],
        ['invited to an address that nobody verified', [], true, false, 403],
        ['invited to the verified address', [], true, true, 302],
        ['in the group', [SYSTEM.consoleGroup], false, false, 302],
      ] as const)('F-07 D-02 the console answers somebody %s', async (_, groups, invited, verified, status) => {
        world.beside.groups.set(PERSON, [...groups]);
        if (invited) world.beside.invited.add('ada@example.com');
        Object.assign(world.identity.access, { email_verified: verified });
        Object.assign(world.identity.id, { email_verified: verified });
        const answer = await world.comeBack(await begin());
        expect([answer.status, cookieOf(answer, 'bff-session') !== undefined]).toEqual([status, status === 302]);
        if (status === 302) return;
        expect(await codeOf(answer)).toBe('group_gate_denied');
        expect(world.identity.calls.at(-1)?.path).toBe('/mtls/oauth/revoke');
      });

      test('a person sees a page in words, with a way back and no script', async () => {
        const refused = await world.ask('GET', '/auth/callback?state=%3Cscript%3E', { origin: null, headers: { accept: 'text/html,*/*' } });
        expect(refused.status).toBe(400);
        expect(refused.headers.get('content-type')).toBe('text/html; charset=utf-8');
        expect(refused.headers.get('content-security-policy')).toContain("default-src 'none'");
        const page = await refused.text();
        expect(page).toMatch(/<html lang="en">[\s\S]*<main>[\s\S]*<h1>This sign-in was not started here, or took too long<\/h1>/);
        expect(page).toContain('<a href="/auth/login">');
        expect(page).not.toContain('script');
      });
    });
  });
}
