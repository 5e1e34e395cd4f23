import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { type Manifest, manifestOf } from '../../kernel/base/manifest.ts';
import { probe } from '../../kernel/test/probe-contract.ts';
import { checkManifest } from './checks.ts';
import { formatFinding } from './finding.ts';
import { readPlugin } from '../../kernel/host/plugin/loader.ts';

const good = manifestOf(probe, '1.0.0');
type Draft = { -readonly [K in keyof Manifest]: Manifest[K] } & Record<string, never>;
/** The good manifest with one fault. */
const broken = (change: (draft: Record<string, Record<string, unknown>>) => void): Manifest => {
  const draft = structuredClone(good) as unknown as Draft;
  change(draft as never);
  return draft as unknown as Manifest;
};
const lab = (change: (draft: Record<string, Record<string, unknown>>) => void = () => undefined) =>
  broken(draft => {
    Object.assign(draft, { vertical: 'lab', events: {}, pages: {} });
    const routes = draft['routes'] as Record<string, { door: string; options: { emits?: string[] } }>;
    for (const [name, { door, options }] of Object.entries(routes)) {
      delete options.emits;
      if (door === 'raw' || door === 'node') delete routes[name];
    }
    change(draft);
  });
const route = (draft: Record<string, Record<string, unknown>>, name = 'greet') =>
  draft['routes']?.[name] as { door: string; method: string; path: string; options: Record<string, unknown> };
const idsOf = (manifest: Manifest, known?: ReadonlyMap<string, Manifest>) => checkManifest(manifest, known).map(({ id }) => id);

test('a manifest without a fault has no finding, as platform service and as vertical', () => {
  expect(checkManifest(good, new Map([['probe', good]]))).toEqual([]);
  expect(checkManifest(lab())).toEqual([]);
});

test('E006 a plugin from outside that says it is of the platform is told so before a start', () => {
  expect(checkManifest(good, new Map([['probe', good]]), { outside: true })).toMatchObject([{ id: 'E006', where: 'probe.vertical' }]);
  expect(checkManifest(lab(), new Map(), { outside: true })).toEqual([]);
});

describe('each fault has its number, its place, what is wrong and what to do', () => {
  const sysManifest = { ...good, id: 'sys', actions: { 'sys:read': { title: 'Read' } } } as Manifest;
  test.each<[string, string, Manifest, Map<string, Manifest>?]>([
    ['E001', 'probe.sdk', broken(draft => Object.assign(draft, { sdk: 2 }))],
    ['E002', 'Pro-be.id', broken(draft => Object.assign(draft, { id: 'Pro-be' }))],
    ['E003', 'probe.vertical', broken(draft => Object.assign(draft, { vertical: 'La-b' }))],
    ['E004', 'probe.id', good, new Map([['probe', structuredClone(good)]])],
    ['E005', 'probe.id', lab(), new Map([['probe', good]])],
    ['E010', 'probe.placement.tier', broken(draft => Object.assign(draft, { placement: {} }))],
    ['E045', 'probe.jobs.sweep', broken(draft => Object.assign(draft['jobs']?.['sweep'] as object, { every: 'often' }))],
    ['E045', 'probe.jobs.sweep', broken(draft => Object.assign(draft['jobs']?.['sweep'] as object, { cron: '5 0 * * *' }))],
    [
      'E045',
      'probe.jobs.sweep',
      broken(draft => Object.assign(draft, { jobs: { sweep: { summary: 'x', runs: 'fleet', cron: '5 0 * * *', timezone: 'Mars/Base' } } })),
    ],
    [
      'E045',
      'probe.jobs.sweep',
      broken(draft => Object.assign(draft, { jobs: { sweep: { summary: 'x', runs: 'fleet', cron: '61 0 * * *' } } })),
    ],
    ['E046', 'probe.tasks.remind', broken(draft => Object.assign(draft['tasks']?.['remind'] as object, { timeout: 'soon' }))],
    ['E046', 'probe.tasks.remind', broken(draft => Object.assign(draft['tasks']?.['remind'] as object, { attempts: 0 }))],
    [
      'E047',
      'probe.metrics.remindersTotal',
      broken(draft => Object.assign(draft['metrics'] as object, { remindersTotal: { kind: 'counter', help: 'x' } })),
    ],
    [
      'E047',
      'probe.metrics.reminders_total',
      broken(draft => Object.assign(draft['metrics'] as object, { reminders_total: { kind: 'counter', help: 'x' } })),
    ],
    [
      'E047',
      'probe.metrics.reminders.kind',
      broken(draft => Object.assign(draft['metrics']?.['reminders'] as object, { kind: 'summary' })),
    ],
    ['E047', 'probe.metrics.reminders.help', broken(draft => Object.assign(draft['metrics']?.['reminders'] as object, { help: '' }))],
    [
      'E047',
      'probe.metrics.reminders.unit',
      broken(draft => Object.assign(draft['metrics']?.['reminders'] as object, { unit: 'per second' })),
    ],
    [
      'E047',
      'probe.metrics.reminders.labels',
      broken(draft => Object.assign(draft['metrics']?.['reminders'] as object, { labels: ['le'] })),
    ],
    [
      'E047',
      'probe.metrics.reminders.labels',
      broken(draft => Object.assign(draft['metrics']?.['reminders'] as object, { labels: ['outcome', 'outcome'] })),
    ],
    ['E047', 'probe.metrics.wait.buckets', broken(draft => Object.assign(draft['metrics']?.['wait'] as object, { buckets: [2, 1] }))],
    ['E010', 'probe.placement.heap_growth', broken(draft => Object.assign(draft, { placement: { tier: 50, heap_growth: 0 } }))],
    ['E010', 'probe.placement.outbox_poll_s', broken(draft => Object.assign(draft, { placement: { tier: 50, outbox_poll_s: 0 } }))],
    ['E010', 'probe.placement.outbox_poll_s', broken(draft => Object.assign(draft, { placement: { tier: 50, outbox_poll_s: 0.5 } }))],
    ['E010', 'probe.placement.heap_growth', broken(draft => Object.assign(draft, { placement: { tier: 50, heap_growth: '100' } }))],
    [
      'E011',
      'probe.events.platform:probe:created',
      broken(draft => Object.assign(draft['events'] as object, { 'platform:probe:created': { title: '', payload: {} } })),
    ],
    [
      'E012',
      'probe.events.lab:probe:thing:made',
      broken(draft => Object.assign(draft['events'] as object, { 'lab:probe:thing:made': { title: '', payload: {} } })),
    ],
    [
      'E013',
      'probe.events.platform:auth:user:created',
      broken(draft => Object.assign(draft['events'] as object, { 'platform:auth:user:created': { title: '', payload: {} } })),
    ],
    ['E021', 'probe.uses.sys', broken(draft => Object.assign(draft, { uses: { sys: ['sys:no:such'] } })), new Map([['sys', sysManifest]])],
    ['E030', 'probe.routes.greet.gate', broken(draft => delete route(draft).options['gate'])],
    ['E031', 'probe.routes.greet.gate', broken(draft => Object.assign(route(draft).options, { gate: 'probe:no:such' }))],
    ['E031', 'probe.routes.greet.gate', broken(draft => Object.assign(route(draft).options, { gate: { any: ['probe:no:such'] } }))],
    ['E032', 'probe.routes.greet.gate', broken(draft => Object.assign(route(draft).options, { gate: { public: 'yes' } }))],
    ['E032', 'probe.routes.greet.gate', broken(draft => Object.assign(route(draft).options, { gate: { signedIn: '' } }))],
    [
      'E021',
      'probe.workloads.side.sys',
      broken(draft => Object.assign(draft, { workloads: { side: { sys: ['sys:no:such'] } } })),
      new Map([['sys', sysManifest]]),
    ],
    ['E033', 'probe.routes.greet.problems', broken(draft => Object.assign(route(draft).options, { problems: ['no_such'] }))],
    ['E034', 'probe.routes.greet.emits', broken(draft => Object.assign(route(draft).options, { emits: ['platform:probe:no:such'] }))],
    ['W034', 'probe.routes.greet.path', broken(draft => Object.assign(route(draft), { path: '/greet' }))],
    ['E035', 'probe.routes.greet.door', lab(draft => Object.assign(route(draft), { door: 'raw' }))],
    ['E035', 'probe.routes.greet.door', lab(draft => Object.assign(route(draft), { door: 'node' }))],
    [
      'E036',
      'probe.routes.twice.path',
      broken(draft => Object.assign(draft['routes'] as object, { twice: { ...route(draft, 'readThing'), path: '/v1/things/{other}' } })),
    ],
    [
      'E037',
      'probe.routes.greet.dispatch',
      broken(draft => Object.assign(route(draft).options, { dispatch: true, gate: { public: 'nobody is asked' } })),
    ],
    ['E039', 'probe.routes.updateThing.ifMatch', broken(draft => delete route(draft, 'updateThing').options['ifMatch'])],
    ['E039', 'probe.routes.removeThing.ifMatch', broken(draft => delete route(draft, 'removeThing').options['ifMatch'])],
    [
      'E039',
      'probe.routes.archiveThing.ifMatch',
      broken(draft => Object.assign(route(draft, 'archiveThing').options, { returns: route(draft, 'readThing').options['returns'] })),
    ],
    ['E048', 'probe.routes.drop.idempotency', broken(draft => delete route(draft, 'drop').options['idempotency'])],
    ['E048', 'probe.routes.rawDrop.idempotency', broken(draft => delete route(draft, 'rawDrop').options['idempotency'])],
    ['E048', 'probe.routes.drop.idempotency', broken(draft => Object.assign(route(draft, 'drop').options, { idempotency: { none: '' } }))],
    ['E048', 'probe.routes.rawDrop.idempotency', broken(draft => Object.assign(route(draft, 'rawDrop'), { door: 'node' }))],
    ['E064', 'probe.routes.readThing.params.thing_id', broken(draft => delete route(draft, 'readThing').options['params'])],
    ['E064', 'probe.routes.greet.params.id', broken(draft => Object.assign(route(draft).options, { params: { id: {} } }))],
    ['E038', 'probe.routes.greet.errors', broken(draft => Object.assign(route(draft).options, { errors: 'scim' }))],
    ['E049', 'probe.routes.put.limit', broken(draft => delete route(draft, 'put').options['limit'])],
    ['E049', 'probe.routes.put.limit', broken(draft => Object.assign(route(draft, 'put').options, { body: {} }))],
    ['E049', 'probe.routes.greet.limit', broken(draft => Object.assign(route(draft).options, { limit: 0.5 }))],
    ['E049', 'probe.routes.put.within', broken(draft => Object.assign(route(draft, 'put').options, { within: '2h' }))],
    ['E049', 'probe.routes.put.within', broken(draft => Object.assign(route(draft, 'put').options, { within: 'soon' }))],
    [
      'E033',
      'probe.routes.put.bodyProblems',
      broken(draft => Object.assign(route(draft, 'put').options, { bodyProblems: { tooLarge: 'x' } })),
    ],
    ['E063', 'probe.routes.greet.rate', broken(draft => Object.assign(route(draft).options, { rate: { max: 0, seconds: 60 } }))],
    [
      'E063',
      'probe.routes.greet.rate',
      broken(draft => Object.assign(route(draft).options, { rate: { max: 1, seconds: 60, by: 'caller' } })),
    ],
    ['E040', 'probe.actions.Probe', broken(draft => Object.assign(draft['actions'] as object, { Probe: { title: 'x' } }))],
    [
      'E041',
      'probe.actions.auth:users:admin',
      lab(draft => Object.assign(draft['actions'] as object, { 'auth:users:admin': { title: 'x' } })),
    ],
    ['W042', 'probe.actions.probe:things:read', broken(draft => Object.assign(draft['actions'] as object, { 'probe:things:read': {} }))],
    [
      'E043',
      'probe.actions.probe:things:read.grants',
      broken(draft => Object.assign(draft['actions'] as object, { 'probe:things:read': { title: 'x', grants: 'owner' } })),
    ],
    ['E044', 'probe.capabilities', lab(draft => Object.assign(draft, { capabilities: ['key-value'] }))],
    ['E055', 'probe.firstSteps.page', broken(draft => Object.assign(draft, { firstSteps: { text: 'Read it here', page: 'no_such' } }))],
    ['E050', 'probe.pages.things.source', broken(draft => Object.assign(draft['pages']?.['things'] as object, { source: 'noSuch' }))],
    ['E050', 'probe.pages.make.submit', broken(draft => Object.assign(draft['pages']?.['make'] as object, { submit: 'noSuch' }))],
    [
      'E050',
      'probe.pages.things.rowActions',
      broken(draft => Object.assign(draft['pages']?.['things'] as object, { rowActions: ['noSuch'] })),
    ],
    [
      'E051',
      'probe.pages.things.columns',
      broken(draft => Object.assign(draft['pages']?.['things'] as object, { columns: [{ field: 'colour', label: 'Colour' }] })),
    ],
    [
      'E052',
      'probe.pages.things.live',
      broken(draft => Object.assign(draft['pages']?.['things'] as object, { live: ['platform:probe:no:such'] })),
    ],
    ['E062', 'probe.folders.../ca', broken(draft => Object.assign(draft, { folders: ['../ca'] }))],
    ['E062', 'probe.folders.keys', broken(draft => Object.assign(draft, { folders: ['keys'] }))],
    ['E062', 'probe.folders.mine', lab(draft => Object.assign(draft, { folders: ['mine'] }))],
    ['E061', 'probe.keys.box.use', broken(draft => Object.assign(draft, { keys: { box: { use: 'sign', description: 'x' } } }))],
    ['E061', 'probe.keys.box.description', broken(draft => Object.assign(draft, { keys: { box: { use: 'seal' } } }))],
    [
      'E061',
      'probe.keys.box',
      lab(draft => Object.assign(draft, { keys: { box: { use: 'seal', description: 'x', documented: 'PLATFORM_BFF_ENCRYPTION_KEY' } } })),
    ],
    [
      'E061',
      'probe.keys.box.file',
      broken(draft => Object.assign(draft, { keys: { box: { use: 'seal', description: 'x', file: '../ca/root.key' } } })),
    ],
    [
      'E060',
      'probe.config.size.env',
      broken(draft => Object.assign(draft, { config: { type: 'object', properties: { size: { type: 'integer', env: 'SIZE' } } } })),
    ],
  ])('%s at %s', (id, where, manifest, known) => {
    const found = checkManifest(manifest, known).filter(finding => finding.id === id);
    expect(found.map(finding => finding.where)).toContain(where);
    for (const finding of found) {
      expect(finding.what.length).toBeGreaterThan(10);
      expect(finding.fix.length).toBeGreaterThan(5);
      expect(formatFinding(finding)).toBe(`${id} ${finding.where}   ${finding.what}   ${finding.fix}`);
    }
  });

  test('KRN-024 an event name with a version segment is E014, wherever it stands', () => {
    for (const name of ['platform:probe:thing:v1', 'platform:probe:v2:created', 'platform:v1:thing:created']) {
      const manifest = broken(draft => Object.assign(draft['events'] as object, { [name]: { title: '', payload: {} } }));
      expect([name, idsOf(manifest)]).toEqual([name, expect.arrayContaining(['E014'])]);
    }
    expect(
      idsOf(broken(draft => Object.assign(draft['events'] as object, { 'platform:probe:vault:opened': { title: '', payload: {} } }))),
    ).toEqual([]);
  });

  test('a waived name is allowed by its decision, but never a foreign vertical or a version', () => {
    const name = 'platform:bff:session:revoked-all';
    const waived = (event: string) =>
      broken(draft =>
        Object.assign(draft, { events: { ...draft['events'], [event]: { title: '', payload: {} } }, waivers: { [event]: 'C3' } }),
      );
    expect(idsOf(waived(name))).toEqual([]);
    expect(idsOf(waived('lab:probe:thing:made'))).toEqual(['E012']);
    expect(idsOf(waived('platform:probe:thing:v1'))).toContain('E014');
  });
});

describe('the platform’s own manifests', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const { services } = JSON.parse(readFileSync(`${root}catalog/platform.json`, 'utf8')) as { services: { package: string }[] };
  const manifests = await Promise.all(services.map(async service => (await readPlugin(`${root}plugins/${service.package}`)).manifest));
  const known = new Map(manifests.map(manifest => [manifest.id, manifest]));

  test('pass every check', () => {
    expect(manifests.length).toBeGreaterThan(5);
    expect(
      manifests
        .flatMap(manifest => checkManifest(manifest, known))
        .filter(({ id }) => id.startsWith('E'))
        .map(formatFinding),
    ).toEqual([]);
  });

  test('KRN-001 spell the brand `platform` wherever a brand stands: events, scopes, headers, settings', async () => {
    for (const manifest of manifests) {
      for (const name of [
        ...Object.keys(manifest.events),
        ...Object.values(manifest.consumes)
          .map(({ event }) => event)
          .filter(name => name !== '*'),
      ])
        expect([manifest.id, name]).toEqual([manifest.id, expect.stringMatching(/^platform[:.]/)]);
      const settings = Object.values((manifest.config as { properties?: Record<string, { env: string }> } | undefined)?.properties ?? {});
      for (const { env } of settings) expect([manifest.id, env]).toEqual([manifest.id, expect.stringMatching(/^PLATFORM_[A-Z0-9_]+$/)]);
      // A scope carries the brand in front on the wire and nowhere inside.
      for (const action of Object.keys(manifest.actions))
        expect([manifest.id, action]).toEqual([manifest.id, expect.not.stringMatching(/platform/i)]);
      const headers = [...JSON.stringify(manifest).matchAll(/\bx-[a-z0-9_-]+/gi)].map(([header]) => header.toLowerCase());
      for (const header of headers)
        expect([manifest.id, header]).toEqual([
          manifest.id,
          expect.stringMatching(/^x-(platform|bff|forwarded|content-type-options|frame-options|csrf|request|amz|api)/),
        ]);
      expect(manifest.vertical).toBe('platform');
    }
    const { CORRELATION_HEADER } = await import('../../kernel/http/doors/exchange.ts');
    const { ENROLLMENT_HEADER } = await import('../../kernel/host/machine/enrollment/enrollment.ts');
    expect([CORRELATION_HEADER, ENROLLMENT_HEADER]).toEqual(['x-platform-correlation-id', 'x-platform-bootstrap-enrollment']);
    const { KERNEL_CONFIG } = await import('../../kernel/host/boot/configuration.ts');
    for (const { env } of Object.values(KERNEL_CONFIG.properties) as unknown as { env: string }[]) expect(env).toMatch(/^PLATFORM_/);
  });

  test('mean the same after a trip through JSON', () => {
    for (const manifest of [...manifests, good]) expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest);
    expect(manifestOf(probe, '1.0.0')).toEqual(good);
  });
});
