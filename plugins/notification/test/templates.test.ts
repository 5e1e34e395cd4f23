import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { World } from './fixtures/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start();
});
afterAll(() => world[Symbol.asyncDispose]());

let people = 0;
/** Writes a template, sends a message by its key, and answers what the inbox shows. */
async function rendered(
  env_id: string,
  {
    key,
    locale,
    vars = {},
    ...literal
  }: { key: string; locale?: string; vars?: Record<string, string | number>; subject?: string; body?: string },
) {
  const user = as.userIn(env_id, 'post:read');
  const id = await world.send({
    env_id,
    recipient: { user_id: user.id, email: `t${++people}@example.org` },
    template: { key, vars, ...(locale ? { locale } : {}) },
    channels: ['email'],
    ...literal,
  });
  await world.shown(id);
  const {
    subject,
    body,
    locale: language,
    content_type,
    rendered_from,
  } = await world.host.by(user).messageContent({ params: { notification_id: id } });
  return { subject, body, language, content_type, rendered_from, id, user_id: user.id };
}
const write = (envId: string, key: string, locale: string, subject: string, body: string) =>
  world.host.by(world.admin(envId)).putTemplate({ targetEnvId: envId, params: { key }, body: { locale, subject, body } });

describe('a template', () => {
  test('NTF-023 NTF-039 of the environment, key and language fills in its values at delivery; a missing one is empty', async () => {
    const [env_id, other] = [world.env(), world.env()];
    await write(env_id, 'shop.paid', 'en', 'Paid: {{amount}} {{nothing}}', 'Dear {{name}}, thank you.');
    expect(await rendered(env_id, { key: 'shop.paid', vars: { amount: 7, name: 'Ada' } })).toMatchObject({
      subject: 'Paid: 7',
      body: 'Dear Ada, thank you.',
      rendered_from: 'template',
      content_type: 'text/plain',
    });
    expect(await rendered(other, { key: 'shop.paid', subject: 'Own words', body: 'Here' })).toMatchObject({
      subject: 'Own words',
      rendered_from: 'literal',
    });
  });

  test('NTF-039 is looked for in the exact language, then without its region, then in English', async () => {
    const env_id = world.env();
    for (const locale of ['en', 'de', 'de-AT']) await write(env_id, 'k', locale, locale, locale);
    const language = async (locale: string) => (await rendered(env_id, { key: 'k', locale })).language;
    expect([await language('de-AT'), await language('de-CH'), await language('fr'), await language('DE_at')]).toEqual([
      'de-AT',
      'de',
      'en',
      'de-AT',
    ]);
  });

  test('NTF-026 that is not there, or cannot be rendered, gives way to the words of the producer', async () => {
    const env_id = world.env();
    expect(await rendered(env_id, { key: 'not.there', subject: 'Literal', body: 'words {{x}}' })).toMatchObject({
      subject: 'Literal',
      body: 'words {{x}}',
      rendered_from: 'literal',
    });
    await write(env_id, 'bomb', 'en', 's', '{% for a in (1..100000) %}{% for b in (1..100000) %}{{a}}{% endfor %}{% endfor %}');
    expect(await rendered(env_id, { key: 'bomb', subject: 'Literal', body: 'words' })).toMatchObject({
      subject: 'Literal',
      body: 'words',
      rendered_from: 'literal',
    });
  });

  test('escapes every value in HTML, leaves plain text as it is, and keeps a subject on one line', async () => {
    const env_id = world.env();
    await write(env_id, 'html', 'en', 'Hi {{name}}', '<p>Hello {{name}} {{name | raw}}</p>');
    await write(env_id, 'plain', 'en', 'Hi {{name}}', 'Hello {{name}}');
    const vars = { name: '<img src=x onerror=alert(1)>\r\nBcc: e@x.example' };
    expect(await rendered(env_id, { key: 'html', vars })).toMatchObject({
      content_type: 'text/html',
      subject: 'Hi <img src=x onerror=alert(1)> Bcc: e@x.example',
      body: expect.not.stringContaining('<img'),
    });
    expect(await rendered(env_id, { key: 'plain', vars })).toMatchObject({ content_type: 'text/plain', body: `Hello ${vars.name}` });
    const [mail] = (await world.host.by(as.user('post:mailbox:read')).listMailbox({ query: { limit: 1 } })).items;
    expect(mail?.html).not.toContain('<img src=x');
  });

  test('NTF-024 has the branding of its environment and the reserved values, which no producer replaces', async () => {
    const env_id = world.env();
    world.looks.set(env_id, { primary_color: '#a01020', logo_url: 'https://cdn.example/logo.svg' });
    await write(env_id, 'branded', 'en', 'S', '{{primary_color}} {{logo_url}} {{user_id}} {{env_id}} {{title}}');
    const { body, id, user_id } = await rendered(env_id, {
      key: 'branded',
      vars: { primary_color: 'red', env_id: 'mine', title: 'theirs' },
    });
    expect(body).toBe(`#a01020 https://cdn.example/logo.svg ${user_id} ${env_id} S`);
    await world.reaches(id, 'delivered');
    const [mail] = (await world.host.by(as.user('post:mailbox:read')).listMailbox({ query: { limit: 1 } })).items;
    expect(mail?.html).toContain('border-top:4px solid #a01020');
    expect(mail?.html).toContain('src="https://cdn.example/logo.svg"');
  });

  test('NTF-050 that cannot be read is refused with its fault; {{{ is not supported, and files are not there', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    for (const body of ['{{{name}}}', '{% if %}', '{{ x | nofilter }}{% endfoo %}'])
      await expect(
        admin.putTemplate({ targetEnvId: env_id, params: { key: 'bad' }, body: { locale: 'en', subject: 's', body } }),
      ).rejects.toMatchObject({ status: 400, code: 'template_invalid' });
    await write(env_id, 'file', 'en', 's', "{% include '/etc/passwd' %}{% render 'package.json' %}");
    expect(await rendered(env_id, { key: 'file', subject: 'L', body: 'l' })).toMatchObject({ rendered_from: 'literal' });
  });
});

describe('the templates of an environment', () => {
  test('NTF-050 are listed beside those that services bring, overridden, previewed in both themes, tried and removed', async () => {
    const env_id = world.env();
    const admin = world.host.by(world.admin(env_id));
    const rows = async () => (await admin.listTemplates({ targetEnvId: env_id, query: { key: 'auth.reset_password', limit: 200 } })).items;
    const brought = await rows();
    expect(brought.map(({ locale, origin }) => [locale, origin])).toEqual([
      ['ar', 'service'],
      ['de', 'service'],
      ['en', 'service'],
    ]);
    const arabic = await admin.showTemplate({ targetEnvId: env_id, params: { template_id: 'auth.reset_password:ar' } });
    expect(arabic.html_light).toContain('dir="rtl"');
    expect(arabic.text).toContain('https://');
    await write(env_id, 'auth.reset_password', 'en', 'New password', '<p>Go <a href="{{link}}">there</a></p>');
    expect((await rows()).map(({ locale, origin, version }) => [locale, origin, version])).toContainEqual(['en', 'environment', 1]);
    expect(await rendered(env_id, { key: 'auth.reset_password', vars: { link: 'https://x.example/?a=1&b=2' } })).toMatchObject({
      subject: 'New password',
      body: '<p>Go <a href="https://x.example/?a=1&amp;b=2">there</a></p>',
    });
    const preview = await admin.previewTemplate({ targetEnvId: env_id, body: { key: 'auth.reset_password', locale: 'en' } });
    expect(preview.html_light).not.toBe(preview.html_dark);
    expect(preview.text).toMatch(/there \(https:\/\/.+\)/);
    await expect(admin.previewTemplate({ targetEnvId: env_id, body: { key: 'no.such' } })).rejects.toMatchObject({ status: 404 });
    expect(
      await admin.sendTemplate({
        targetEnvId: env_id,
        params: { template_id: 'auth.reset_password:en' },
        body: { recipient: 'me@example.org' },
      }),
    ).toMatchObject({ ok: true, adapter: 'mailbox' });
    expect((await world.host.by(as.user('post:mailbox:read')).listMailbox({ query: { to: 'me@example.org' } })).items[0]?.subject).toBe(
      'New password',
    );
    expect(await admin.dropTemplate({ targetEnvId: env_id, params: { template_id: 'auth.reset_password:en' } })).toEqual({ ok: true });
    await expect(admin.deleteTemplate({ targetEnvId: env_id, params: { key: 'auth.reset_password' } })).rejects.toMatchObject({
      status: 404,
      code: 'template_not_found',
    });
    expect((await rows()).map(({ origin }) => origin)).toEqual(['service', 'service', 'service']);
  });

  test('G-K-03 are written and removed under their version: a stale If-Match changes nothing', async () => {
    const env_id = world.env();
    const words = { locale: 'en', subject: 'S', body: 'B' };
    const send = async (method: string, path: string, version: number, body?: object) => {
      const answer = await world.host.fetch(`/v1/templates${path}?target_env_id=${env_id}`, {
        method,
        persona: world.admin(env_id),
        headers: { 'if-match': `"${version}"` },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      return [answer.status, answer.headers['etag']];
    };
    expect(await send('PUT', '/guarded', 4, words)).toEqual([412, '"0"']);
    expect(await send('PUT', '/guarded', 0, words)).toEqual([200, '"1"']);
    expect(await send('PUT', '/guarded', 1, words)).toEqual([200, '"2"']);
    for (const [method, path, body] of [
      ['PUT', '/guarded', words],
      ['POST', '', { key: 'guarded', ...words }],
      ['DELETE', '/guarded', undefined],
      ['POST', '/guarded:en/drop', undefined],
    ] as const)
      expect(await send(method, path, 1, body)).toEqual([412, '"2"']);
    expect(
      (await world.host.by(world.admin(env_id)).listTemplates({ targetEnvId: env_id, query: { key: 'guarded' } })).items,
    ).toMatchObject([{ version: 2 }]);
    expect(await send('POST', '/guarded:en/drop', 2)).toEqual([200, undefined]);
  });

  test('NTF-050 policy decides who writes them, as it does of gateways, dead letters and preferences', async () => {
    const env_id = world.env();
    const [reader, nobody] = [world.host.by(as.userIn(env_id, 'post:read', 'post:write')), world.host.by(as.userIn(env_id))];
    const [target, id] = [{ targetEnvId: env_id }, '01900000-0000-7000-8000-0000000000aa'];
    for (const refused of [
      () => reader.putTemplate({ ...target, params: { key: 'k' }, body: { locale: 'en', subject: 's', body: 'b' } }),
      () => reader.listTemplates(target),
      () => reader.deleteTemplate({ ...target, params: { key: 'k' } }),
      () => reader.listGateways(target),
      () => reader.createGateway({ ...target, body: { name: 'G', channel: 'sms' } }),
      () => reader.updateGateway({ ...target, params: { gateway_id: id }, body: { name: 'H' } }),
      () => reader.deleteGateway({ ...target, params: { gateway_id: id } }),
      () => reader.listDeadLetters(target),
      () => reader.replayDeadLetter({ ...target, params: { dead_letter_id: id } }),
      () => reader.replayMatching({ ...target, body: {} }),
      () => nobody.getPreferences(),
      () => nobody.putPreferences({ body: { muted_categories: [], quiet_hours: [] } }),
    ])
      await expect(refused()).rejects.toMatchObject({ status: 403, code: 'policy_denied' });
  });
});
