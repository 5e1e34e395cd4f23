import { SYSTEM } from '@platform/sdk';
import { as, boot, type BootedHost } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../base/ids.ts';
import { manifestOf } from '../../base/manifest.ts';
import { newWorld, probeOf } from '../../test/probe.ts';
import { probe } from '../../test/probe-contract.ts';
import { pageDefinition } from './page-definition.ts';

const manifest = manifestOf(probe, '1.0.0');
const world = newWorld();
const lab = probeOf('lab', world);
let host: BootedHost<typeof probe>;
const registered: { services: { service: string; nav: { page: string }[]; pages: string[] }[] }[] = [];
const ada = as.user('lab:probe:things:read', 'lab:probe:things:write');
const registration = Promise.withResolvers<void>();

beforeAll(async () => {
  host = await boot<typeof probe, (typeof lab)['uses']>(lab, {
    stubs: {
      sys: {
        registerVertical: (async ({ body }: { body: (typeof registered)[number] }) => {
          registered.push(body);
          registration.resolve();
          return {};
        }) as never,
      },
    },
  });
});
afterAll(async () => host?.[Symbol.asyncDispose]());

const form = [
  { name: 'name', label: 'Name', type: 'text', required: true },
  { name: 'size', label: 'Size', type: 'number', min: 1 },
  {
    name: 'kind',
    label: 'Kind',
    type: 'select',
    options: [
      { value: 'small', label: 'Small' },
      { value: 'large', label: 'Large' },
    ],
  },
  { name: 'notes', label: 'Notes', type: 'textarea', help: 'What else is to be known' },
  { name: 'place', label: 'Place', type: 'json' },
];
const total = { label: 'Total', value: 'total' };
const figures = { id: 'figures', kind: 'stats', source: { resource: 'figures' }, items: [{ ...total, format: 'number' }] };
const note = { id: 'note', kind: 'notice', tone: 'info', text: 'Read this.' };

describe('a page in its wire form (G-K-18)', () => {
  test.each<[string, object]>([
    [
      'things',
      {
        schema: 'platform.admin-ui/1',
        service: 'probe',
        page: 'things',
        title: 'Things',
        scope: 'env',
        live_types: ['platform:probe:thing:created'],
        sections: [
          {
            id: 'things-create',
            kind: 'actions',
            actions: [{ id: 'create', label: 'Make a thing', resource: 'things', then: 'reload', form }],
          },
          {
            id: 'things',
            kind: 'table',
            source: { resource: 'things', paged: true },
            row_key: 'thing_id',
            empty: 'Nothing here yet.',
            columns: [
              { label: 'Name', value: 'name' },
              { label: 'Kind', value: 'kind', format: 'badge', tone_map: { small: 'ok', large: 'warn' } },
            ],
            filters: [
              {
                name: 'kind',
                label: 'Kind',
                type: 'select',
                options: [
                  { value: 'small', label: 'Small' },
                  { value: 'large', label: 'Large' },
                ],
              },
            ],
            row_actions: [
              {
                id: 'archiveThing',
                label: 'Archive',
                resource: 'things/{row.thing_id}/archiveThing',
                confirm: 'Archive it?',
                when: { path: 'kind', op: 'eq', value: 'small' },
                then: 'reload',
              },
              {
                id: 'update',
                label: 'Edit',
                resource: 'things/{row.thing_id}/update',
                then: 'reload',
                form: [{ name: 'name', label: 'Name', type: 'text', required: true }],
              },
              {
                id: 'delete',
                label: 'Delete',
                resource: 'things/{row.thing_id}/delete',
                confirm: 'Delete this for good?',
                tone: 'bad',
                then: 'reload',
              },
            ],
          },
        ],
      },
    ],
    [
      'feed',
      {
        schema: 'platform.admin-ui/1',
        service: 'probe',
        page: 'feed',
        title: 'Feed',
        scope: 'env',
        sections: [
          {
            id: 'feed',
            kind: 'table',
            source: { resource: 'feed', paged: true },
            row_key: 'thing_id',
            columns: [{ label: 'Name', value: 'name' }],
            filters: [],
            row_actions: [],
            empty: 'Nothing here yet.',
          },
        ],
      },
    ],
    [
      'figures',
      { schema: 'platform.admin-ui/1', service: 'probe', page: 'figures', title: 'Figures', scope: 'platform', sections: [figures] },
    ],
    [
      'detail',
      {
        schema: 'platform.admin-ui/1',
        service: 'probe',
        page: 'detail',
        title: 'Detail',
        scope: 'org',
        sections: [{ id: 'detail', kind: 'detail', source: { resource: 'detail' }, fields: [total] }],
      },
    ],
    [
      'curve',
      {
        schema: 'platform.admin-ui/1',
        service: 'probe',
        page: 'curve',
        title: 'Curve',
        scope: 'env',
        sections: [
          {
            id: 'curve',
            kind: 'chart',
            chart: 'line',
            source: { resource: 'curve' },
            x: 'kind',
            series: [{ label: 'Version', value: 'version' }],
            unit: 'things',
          },
        ],
      },
    ],
    [
      'make',
      {
        schema: 'platform.admin-ui/1',
        service: 'probe',
        page: 'make',
        title: 'Make',
        description: 'One at a time',
        scope: 'env',
        sections: [
          {
            id: 'make',
            kind: 'form',
            source: { resource: 'make/initial' },
            fields: form,
            submit: { id: 'submit', label: 'Make a thing', resource: 'make', then: 'toast' },
          },
        ],
      },
    ],
    ['note', { schema: 'platform.admin-ui/1', service: 'probe', page: 'note', title: 'Note', scope: 'env', sections: [note] }],
    [
      'both',
      {
        schema: 'platform.admin-ui/1',
        service: 'probe',
        page: 'both',
        title: 'Both',
        scope: 'env',
        sections: [
          {
            id: 'both',
            kind: 'tabs',
            tabs: [
              { label: 'One', sections: [figures] },
              { label: 'Two', sections: [note] },
            ],
          },
        ],
      },
    ],
  ])('%s', (name, definition) => {
    expect(pageDefinition(manifest, name)).toEqual(definition);
  });

  test('tabs are read again as often, and by the same events, as the pages that they show', () => {
    const pages = {
      ...manifest.pages,
      note: { ...manifest.pages['note'], refresh: 3, live: ['platform:probe:thing:made'] },
      both: { ...manifest.pages['both'], refresh: 9 },
    } as typeof manifest.pages;
    expect(pageDefinition({ ...manifest, pages }, 'both')).toMatchObject({ refresh_s: 3, live_types: ['platform:probe:thing:made'] });
  });

  test('a page nobody declared is none', () => expect(pageDefinition(manifest, 'nothing')).toBeUndefined());
});

test('KRN-012 the navigation and the pages a service declares reach the registry and the console without its code', async () => {
  await registration.promise;
  expect(registered[0]).toMatchObject({
    vertical: 'lab',
    services: [
      {
        service: 'probe',
        label: 'Probe',
        nav: [
          { page: 'things', label: 'Things', order: 2, scope: 'env', group: 'Shelf' },
          { page: 'figures', label: 'Figures', order: 1, scope: 'platform' },
          { page: 'work', label: 'Work', order: 900, scope: 'platform', icon: 'clock' },
        ],
        pages: ['things', 'feed', 'figures', 'detail', 'curve', 'make', 'note', 'both', 'work'],
      },
    ],
    scopes: expect.arrayContaining([expect.objectContaining({ scope: 'lab:probe:things:read', service: 'probe' })]),
    error_codes: expect.arrayContaining([{ service: 'probe', code: 'thing_taken', status: 409, title: 'The name is taken' }]),
  });
  for (const page of ['things', 'figures', 'make', 'both']) {
    const { status, json } = await host.fetch(`/v1/admin/ui/${page}`, { persona: ada });
    expect([page, status, json]).toEqual([page, 200, pageDefinition(host.manifest, page)]);
    if (page !== 'both') {
      const source = await host.fetch(`/v1/admin/${page === 'make' ? 'make/initial' : page}?target_env_id=${ada.envId}`, { persona: ada });
      expect([page, source.status]).toEqual([page, 200]);
    }
  }
  expect((await host.fetch('/v1/admin/ui/nothing', { persona: ada })).status).toBe(404);
  expect((await host.fetch('/v1/admin/ui/make', { persona: as.user('lab:probe:work:run') })).status).toBe(403);
});

test('F-25 data of a page of the platform name their environment too, and one that is not there is no empty one', async () => {
  const administrator = as.user('sys:sys:admin', 'lab:probe:things:read');
  const read = (target: string) => host.fetch(`/v1/admin/figures${target}`, { persona: administrator });
  expect((await read('')).json['code']).toBe('target_env_required');
  const gone = newId();
  await host.process.kv.call('SET', `env-state:{${gone}}`, 'absent');
  expect(await read(`?target_env_id=${gone}`)).toMatchObject({ status: 403, json: { code: 'target_denied' } });
  expect((await read(`?target_env_id=${administrator.envId}`)).status).toBe(200);
});

test('REG-004 whoever has tasks or jobs has a page of them: figures, the dead with replay, the last runs and a run at once, all recorded', async () => {
  const operator = as.user('lab:probe:work:admin', 'lab:probe:things:write');
  const read = async (path: string, persona = operator) => host.fetch(`/v1/admin/work/${path}`, { persona });
  const send = (path: string, persona = operator) => host.fetch(`/v1/admin/work/${path}`, { method: 'POST', persona });
  const { json: page } = await host.fetch('/v1/admin/ui/work', { persona: operator });
  expect(page).toMatchObject({ scope: 'platform', sections: [{ id: 'queues' }, { id: 'dead' }, { id: 'jobs' }] });
  expect((await read('queues', as.user('lab:probe:things:read'))).status).toBe(403);
  await host.fetch('/v1/remind', { method: 'POST', persona: operator, body: '{"text":"fail"}' });
  const dead = async () => (await read('dead')).json['items'] as { task_id: string; name: string; last_failure: string }[];
  await expect.poll(dead).toMatchObject([{ name: 'remind', attempts: 1, last_failure: 'Error' }]);
  expect((await read('queues')).json['items']).toMatchObject([{ name: 'remind', summary: 'Reminds somebody', dead: 1, waiting: 0 }]);
  const [task] = await dead();
  expect((await send(`dead/${task?.task_id}/replay`)).status).toBe(200);
  await expect.poll(dead).toMatchObject([{ task_id: task?.task_id, attempts: 1 }]);
  expect([(await send(`dead/${task?.task_id}/drop`)).status, (await send(`dead/${task?.task_id}/drop`)).status]).toEqual([200, 404]);
  expect((await read('dead?cursor=nonsense')).json['code']).toBe('invalid_cursor');
  expect((await read('jobs')).json['items']).toMatchObject([
    { name: 'sweep', when: 'every 1h' },
    { name: 'count', when: 'every 1h' },
  ]);
  const before = world.calls.filter(call => call === 'sweep').length;
  expect(await send('jobs/sweep/run')).toMatchObject({ status: 202, json: { state: 'started' } });
  await expect.poll(() => world.calls.filter(call => call === 'sweep').length).toBe(before + 1);
  await expect.poll(async () => ((await read('jobs')).json['items'] as { outcome?: string }[])[0]?.outcome).toBe('ok');
  expect([(await send('jobs/nothing/run')).status, (await send('jobs/sweep/run', as.user('lab:probe:work:read'))).status]).toEqual([
    404, 403,
  ]);
  // What an operator does to them is in the trail of the platform, and what was refused is not (REG-004).
  const by = { env_id: SYSTEM.envId, actor: { kind: 'user', id: operator.id } };
  await expect
    .poll(() => host.audits.filter(({ action }) => String(action).startsWith('work.')))
    .toMatchObject([
      { ...by, action: 'work.task.replayed', resource: { type: 'task', id: task?.task_id }, details: { name: 'remind' } },
      { ...by, action: 'work.task.dropped', resource: { type: 'task', id: task?.task_id }, details: { name: 'remind' } },
      { ...by, action: 'work.job.ordered', resource: { type: 'job', id: 'sweep' } },
    ]);
});

test('KRN-019 what a page changes is changed by POST: create, update, delete and every action of a row', async () => {
  const send = (path: string, body?: object) =>
    host.fetch(`/v1/admin/${path}?target_env_id=${ada.envId}`, {
      method: 'POST',
      persona: ada,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  world.calls.length = 0;
  expect((await send('things', { name: 'one' })).status).toBe(201);
  expect((await send('things/77/update', { name: 'two' })).json).toMatchObject({ thing_id: '77', name: 'two' });
  expect((await send('things/77/delete')).json).toEqual({ ok: true });
  expect((await send('things/77/archiveThing')).json).toEqual({ ok: true });
  expect(world.calls).toEqual(['create one', 'update 77 two', 'remove 77', 'archive 77']);
  for (const [path, body] of [
    ['things/77/update', { name: 'x' }],
    ['things/77/delete', undefined],
  ] as const) {
    const unscoped = await host.fetch(`/v1/admin/${path}?target_env_id=${ada.envId}`, {
      method: 'POST',
      persona: as.user('lab:probe:things:read'),
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    expect([path, unscoped.status]).toEqual([path, 403]);
    expect((await host.fetch(`/v1/admin/${path}`, { method: 'POST', persona: ada })).json['code']).toBe('target_env_required');
  }
  for (const resource of ['policy-sets', 'relations', 'attributes']) {
    const admin = as.user('lab:probe:policy:admin');
    const answer = await host.fetch(`/v1/admin/${resource}?target_env_id=${admin.envId}`, {
      method: 'POST',
      persona: admin,
      body: '{"op":"delete"}',
    });
    expect([resource, answer.status]).toEqual([resource, 400]);
  }
});
