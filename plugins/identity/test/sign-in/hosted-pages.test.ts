import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from '../fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());
const STEPS = [
  'sign-in',
  'sign-up',
  'mfa',
  'password-reset',
  'password-reset/confirm',
  'password-change',
  'verify-email',
  'consent',
  'device',
  'ciba',
  'wallet',
  'error',
  'account-recovery',
  'account-recovery/confirm',
  'account-recovery/cancel',
  'account-recovery/finish',
  'sso',
  'account',
  'account/mfa',
];

describe('the hosted pages', () => {
  test('SGN-001 SGN-015 SGN-032 SGN-033 SGN-034 IDN-004 each step has its path, on the host of the protocol', async () => {
    const titles = new Set<string>();
    for (const step of STEPS) {
      const page = await world.browser().get(`/${step}`);
      expect([step, page.status]).toEqual([step, 200]);
      expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
      expect(page.text).toContain(`data-step="${step}"`);
      titles.add(/<title>([^<]*)/.exec(page.text)?.[1] ?? '');
    }
    expect(titles.size).toBeGreaterThan(10);
  });

  test('SGN-050 every step is made of the same bundle, the one of this build', async () => {
    const files = new Set<string>();
    for (const step of STEPS) {
      const { text } = await world.browser().get(`/${step}`);
      files.add([...text.matchAll(/(?:src|href)="(\/signin-assets\/[^"]+)"/g)].map(([, path]) => path).join(' '));
    }
    const [only, ...more] = files;
    expect([more, only?.split(' ').length]).toEqual([[], 2]);
    // Named by their content: another build has other names.
    expect(only).toMatch(/^\/signin-assets\/style-[\w-]{8}\.css \/signin-assets\/signin-[\w-]{8}\.js$/);
  });

  test("run nothing but their own files, in nobody's frame, and are kept by nobody", async () => {
    const page = await world.browser().get('/sign-in');
    const policy = String(page.headers['content-security-policy']);
    expect(policy).toContain("default-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toContain('unsafe');
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    expect(page.text).not.toMatch(/<script(?![^>]*\bsrc=)|\son[a-z]+=|style="/);
    const assets = [...page.text.matchAll(/(?:src|href)="(\/signin-assets\/[^"]+)"/g)].map(([, path]) => path as string);
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const asset of assets) {
      const file = await world.browser().get(asset);
      expect([asset, file.status, file.headers['cache-control']]).toEqual([asset, 200, 'public, max-age=31536000, immutable']);
      expect(file.headers['content-type']).toMatch(/^text\/(javascript|css)/);
    }
  });

  test('come compressed to whoever takes it, with the same words', async () => {
    for (const path of [
      '/sign-in',
      '/nowhere',
      [...(await world.browser().get('/sign-in')).text.matchAll(/src="([^"]+)"/g)][0]?.[1] as string,
    ]) {
      const raw = await world.reach(path);
      const head = await world.reach(path, { method: 'HEAD', headers: { 'accept-encoding': 'gzip, br' } });
      const refused = await world.reach(path, { method: 'HEAD', headers: { 'accept-encoding': 'br;q=0' } });
      expect([path, raw.headers['content-encoding'], head.headers['content-encoding'], refused.headers['content-encoding']]).toEqual([
        path,
        undefined,
        'br',
        undefined,
      ]);
      expect(head.headers['vary']).toBe('accept-encoding');
      expect(Number(head.headers['content-length'])).toBeLessThan(Number(raw.headers['content-length']) / 2);
    }
  });

  test('SGN-017 speak the language of the authorization, of the address, or of the browser, and turn around with it', async () => {
    const shown = async (path: string, accept: string) =>
      /<html lang="(\w+)" dir="(\w+)"/.exec((await world.reach(path, { headers: { 'accept-language': accept } })).text)?.slice(1);
    expect(await shown('/sign-in', 'ar-EG,ar;q=0.9')).toEqual(['ar', 'rtl']);
    expect(await shown('/sign-in?ui_locales=de', 'ar')).toEqual(['de', 'ltr']);
    const begun = await world.begin(world.browser(), { ui_locales: 'fr ar' });
    expect(begun.oauth['ui_locales']).toBe('fr ar');
    expect(await shown(begun.page.location, 'en')).toEqual(['ar', 'rtl']);
  });

  test('an unknown path is the static 404 page, also below the assets and above the root', async () => {
    for (const path of [
      '/nowhere',
      '/signin-assets/nothing.js',
      '/signin-assets/..%2f..%2fpackage.json',
      '/signin-assets/manifest.json',
      '/passkey-enroll',
      '/sign-in/',
    ]) {
      const page = await world.browser().get(path);
      expect([path, page.status]).toEqual([path, 404]);
      expect(page.headers['content-type']).toBe('text/html; charset=utf-8');
    }
    expect((await world.browser().post('/sign-in', {})).status).toBe(405);
  });

  test('nothing of the address becomes markup', async () => {
    const page = await world
      .browser()
      .get(`/sign-in?${new URLSearchParams({ login_hint: '"><script>alert(1)</script>', client_id: '<b>' })}`);
    expect(page.text).not.toContain('<script>alert');
    expect(page.text).not.toContain('<b>');
  });

  test("IDN-006 SGN-025 branding never fails: without the registry the platform's defaults show", async () => {
    const answer = await world.browser().get('/v1/branding');
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.json).sort()).toEqual([
      'background_color',
      'customCss',
      'display_name',
      'font_family',
      'logo_url',
      'primary_color',
      'text_color',
      'theme_mode',
    ]);
  });

  test('a host nobody signs in on is refused', async () => {
    const answer = await world.host.fetch('/sign-in', {
      host: world.authHost,
      as: await world.host.workload('proxy'),
      headers: { 'x-platform-hostname': 'auth.unknown.localhost', 'x-platform-service': 'auth' },
    });
    expect([answer.status, answer.json['code']]).toEqual([404, 'realm_not_found']);
  });

  test("a tenant's host is an issuer of its own, whose people are not the platform's", async () => {
    const host = 'auth.prod.acme.localhost';
    const envId = await world.environment(host);
    await world.person('ada@example.org');
    await world.person('ada@example.org', { envId, password: 'the same address, another person' });
    const proxied = async (path: string, init: { method?: string; body?: string; headers?: Record<string, string> } = {}) =>
      world.host.fetch(path, {
        ...init,
        host: world.authHost,
        as: await world.host.workload('proxy'),
        headers: { 'x-platform-hostname': host, 'x-platform-service': 'auth', ...init.headers },
      });
    expect((await proxied('/.well-known/openid-configuration')).json).toMatchObject({
      issuer: `https://${host}:8443`,
      token_endpoint: `https://${host}:8443/oauth/token`,
    });
    const signIn = (password: string) =>
      proxied('/v1/sign-in', {
        method: 'POST',
        headers: { origin: `https://${host}:8443` },
        body: JSON.stringify({ email: 'ada@example.org', password, oauth: {} }),
      });
    expect((await signIn('a sentence nobody has guessed')).status).toBe(401);
    const answer = await signIn('the same address, another person');
    expect(answer.status).toBe(200);
    const cookie = String(answer.headers['set-cookie']).split(';')[0] as string;
    // A session of the tenant is none at the platform.
    const elsewhere = await world.host.fetch('/v1/sign-out', {
      method: 'POST',
      host: world.authHost,
      headers: { cookie, 'x-platform-csrf': String(answer.json['session_token_id']) },
    });
    expect(elsewhere.json['code']).toBe('csrf_mismatch');
  });
});

describe('a request that no page and no route takes', () => {
  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    world.reach(path, { method, headers: { 'content-type': 'application/json', ...headers }, ...(method === 'GET' ? {} : { body: '{}' }) });

  test.each([
    ['GET', '/v1/sign-in', 'POST'],
    ['PUT', '/v1/sign-in', 'POST'],
    ['DELETE', '/v1/password/reset-request', 'POST'],
    ['POST', '/v1/branding', 'GET, HEAD'],
    ['PUT', '/v1/clients', 'GET, HEAD, POST'],
    ['GET', '/v1/clients/018f0000-0000-7000-8000-00000000e001/secret', 'POST'],
    ['POST', '/sign-in', 'GET, HEAD'],
  ])('F-28 %s %s is 405 with what the path takes', async (method, path, allow) => {
    const answer = await ask(method, path);
    expect([answer.status, answer.headers['allow'], answer.headers['content-type'], answer.json['code']]).toEqual([
      405,
      allow,
      expect.stringContaining('application/problem+json'),
      'method_not_allowed',
    ]);
  });

  test.each([
    ['GET', '/oauth/token', 'POST'],
    ['GET', '/oauth/par', 'POST'],
    ['PUT', '/oauth/authorize', 'GET, HEAD, POST'],
    ['GET', '/oauth/authorize/continue', 'POST'],
    ['DELETE', '/oauth/userinfo', 'GET, POST'],
    ['POST', '/.well-known/jwks.json', 'GET, HEAD'],
    ['POST', '/.well-known/openid-configuration', 'GET, HEAD'],
  ])('F-28 %s %s is 405 in the words of the protocol', async (method, path, allow) => {
    const answer = await ask(method, path);
    expect([answer.status, answer.headers['allow'], answer.json['error']]).toEqual([405, allow, 'invalid_request']);
  });

  test('F-28 an unknown path is a problem to whoever reads JSON, and a page to a browser', async () => {
    const json = { accept: 'application/json' };
    for (const [path, headers] of [
      ['/nowhere', json],
      ['/v1/nowhere', {}],

      ['/nowhere', { accept: 'application/problem+json' }],
    ] as const) {
      const answer = await ask('GET', path, headers);
      expect([path, answer.status, answer.headers['content-type'], answer.json['code'] ?? answer.json['detail']]).toEqual([
        path,
        404,
        expect.stringContaining('json'),
        expect.any(String),
      ]);
    }
    const page = await ask('GET', '/nowhere', { accept: 'text/html,application/json' });
    expect([page.status, page.headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
    expect((await ask('POST', '/nowhere')).json['code']).toBe('not_found');
  });

  test('F-28 whoever is not known by a cookie is told how to be', async () => {
    const browser = world.browser();
    const answers = [
      await browser.post('/v1/sign-in', { email: 'nobody@example.org', password: 'x', oauth: {} }),
      await browser.get('/v1/account/sessions'),
      await browser.get('/v1/account/consents'),
      await browser.get('/v1/device?user_code=BCDF-GHJK'),
    ];
    for (const { status, headers } of answers)
      expect([status, headers['www-authenticate']]).toEqual([401, expect.stringMatching(/^Cookie realm="platform"/)]);
  });
});
