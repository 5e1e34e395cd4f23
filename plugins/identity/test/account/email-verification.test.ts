import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CHOSEN, World } from '../fixtures/world.ts';

let world: World;
let count = 0;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
beforeEach(() => world.forgetTries());
const unverified = async () => {
  const email = `waiting-${(count += 1)}@example.org`;
  const userId = await world.person(email);
  await world.sql`update users set email_verified = false where user_id = ${userId}`;
  return { email, userId };
};
const ask = (email: string) => world.browser().post('/v1/email/verify-request', { email });
const verify = (token: string) => world.browser().post('/v1/email/verify', { token });
const verified = async (userId: string) =>
  (await world.sql<{ email_verified: boolean }[]>`select email_verified from users where user_id = ${userId}`)[0]?.email_verified;

describe('confirming an e-mail address', () => {
  test('[H-08] opening the link shows a page and changes nothing; its button confirms, with event and audit', async () => {
    const { email, userId } = await unverified();
    await ask(email);
    const [mail] = await world.mails(email);
    const link = new URL(/https:\S+/.exec(mail?.body ?? '')?.[0] as string);
    // What stands behind # never reaches a server, a log or another site.
    expect([link.origin, link.pathname, link.search]).toEqual([world.issuer, '/verify-email', '']);
    for (let scan = 0; scan < 3; scan++) expect((await world.browser().get(`${link.pathname}${link.search}`)).status).toBe(200);
    expect(await verified(userId)).toBe(false);
    expect((await verify(await world.token(email))).json).toEqual({ status: 'ok' });
    expect(await verified(userId)).toBe(true);
    await world.audited('auth.email.verified', userId);
    expect((await world.host.events('platform:auth:user:updated')).map(({ payload }) => payload['user_id'])).toContain(userId);
    expect((await world.browser().post('/v1/sign-in', { email, password: CHOSEN, oauth: {} })).json['status']).toBe('ok');
  });

  test('[H-13] of twelve that use one link at once, one confirms', async () => {
    const { email } = await unverified();
    await ask(email);
    const token = await world.token(email);
    const answers = await Promise.all(Array.from({ length: 12 }, () => verify(token)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ json }) => json['code'] === 'token_expired')).toHaveLength(11);
  });

  test('the link lasts a day, works on its own host, and is nothing else', async () => {
    const { email, userId } = await unverified();
    await ask(email);
    const token = await world.token(email);
    const [row] = await world.sql<
      { hours: number }[]
    >`select extract(epoch from expires_at - now())::float / 3600 as hours from step_tokens where user_id = ${userId}`;
    expect(row?.hours).toBeGreaterThan(23.9);
    expect((await world.browser().post('/v1/password/reset', { token, password: 'another sentence of mine' })).json['code']).toBe(
      'token_expired',
    );
    const host = 'auth.prod.mail.localhost';
    await world.environment(host);
    const elsewhere = await world.host.fetch('/v1/email/verify', {
      method: 'POST',
      host: world.authHost,
      as: await world.host.workload('proxy'),
      headers: { 'x-platform-hostname': host, 'x-platform-service': 'auth', origin: `https://${host}:8443` },
      body: JSON.stringify({ token }),
    });
    expect([elsewhere.status, elsewhere.json['code']]).toEqual([410, 'token_expired']);
    await world.sql`update step_tokens set expires_at = now() where user_id = ${userId}`;
    expect((await verify(token)).status).toBe(410);
    expect((await verify('never issued')).status).toBe(410);
    expect(await verified(userId)).toBe(false);
  });

  test('asking again always succeeds; mail goes only to addresses that wait, five an hour', async () => {
    const { email } = await unverified();
    await world.person('done@example.org');
    const answers = [await ask('nobody@example.org'), await ask('done@example.org'), await ask(email)];
    expect(answers.map(({ status, json }) => [status, json])).toEqual(answers.map(() => [200, { status: 'ok' }]));
    for (let run = 0; run < 6; run++) expect((await ask(email)).status).toBe(200);
    expect([
      (await world.mails('nobody@example.org')).length,
      (await world.mails('done@example.org')).length,
      (await world.mails(email)).length,
    ]).toEqual([0, 0, 5]);
  });

  test('an environment may let people sign in unconfirmed: `verify_email` of its realm', async () => {
    const host = 'auth.prod.lenient.localhost';
    const envId = await world.environment(host);
    const userId = await world.person('lee@example.org', { envId });
    await world.sql`update users set email_verified = false where user_id = ${userId}`;
    const signIn = async () =>
      world.host.fetch('/v1/sign-in', {
        method: 'POST',
        host: world.authHost,
        as: await world.host.workload('proxy'),
        headers: { 'x-platform-hostname': host, 'x-platform-service': 'auth', origin: `https://${host}:8443` },
        body: JSON.stringify({ email: 'lee@example.org', password: CHOSEN, oauth: {} }),
      });
    expect((await signIn()).json['status']).toBe('verification_required');
    const put = (more: object) => world.registry.putRealm({ params: { env_id: envId }, body: { host, org_id: world.org, ...more } });
    expect(await put({ verify_email: false })).toMatchObject({ verify_email: false });
    expect((await signIn()).json['status']).toBe('ok');
    // Whoever moves the host later does not speak of it, and leaves it as it is.
    expect(await put({})).toMatchObject({ verify_email: false });
  });
});
