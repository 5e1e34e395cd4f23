import { describe, expect, test } from 'vitest';
import { isPlacementKey, placementRefusal } from '../src/fleet/placement-gate.ts';
import catalog from '../../../catalog/platform.json' with { type: 'json' };

const asked = (
  placement: string[],
  more: { singleton?: boolean; rows?: { service_type: string; ip: string; status: 'Active' | 'Starting' | 'Killed' }[] } = {},
) =>
  placementRefusal({
    service: { service_type: 'post', placement, singleton: more.singleton ?? false },
    ip: '10.0.0.1',
    edgeIp: '10.0.0.9',
    rows: more.rows ?? [],
  });

describe('the placement gate', () => {
  test('SUP-013 SUP-018 a pin admits its machine and refuses every other', () => {
    expect([asked(['pin:10.0.0.1']), asked(['pin:10.0.0.2']), asked([])]).toEqual([undefined, 'pin_mismatch', undefined]);
  });

  test('SUP-014 pin:edge is the machine the operator names', () => {
    expect(asked(['pin:edge'])).toBe('pin_mismatch');
    expect(
      placementRefusal({
        service: { service_type: 'proxy', placement: ['pin:edge'], singleton: true },
        ip: '10.0.0.9',
        edgeIp: '10.0.0.9',
        rows: [],
      }),
    ).toBeUndefined();
  });

  test('SUP-015 SUP-019 anti looks at this machine alone, and at what lives there', () => {
    const auth = (ip: string, status: 'Active' | 'Starting' | 'Killed') => ({ service_type: 'auth', ip, status });
    expect([
      asked(['anti:auth'], { rows: [auth('10.0.0.1', 'Starting')] }),
      asked(['anti:auth'], { rows: [auth('10.0.0.2', 'Active')] }),
      asked(['anti:auth'], { rows: [auth('10.0.0.1', 'Killed')] }),
    ]).toEqual(['anti_violation', undefined, undefined]);
  });

  test('SUP-015 SUP-020 a singleton is refused while one is Active anywhere, and not for one that only was', () => {
    const rows = (status: 'Active' | 'Killed') => [{ service_type: 'post', ip: '10.0.0.7', status }];
    expect([
      asked([], { singleton: true, rows: rows('Active') }),
      asked([], { singleton: true, rows: rows('Killed') }),
      asked([], { rows: rows('Active') }),
    ]).toEqual(['singleton_violation', undefined, undefined]);
  });

  test('SUP-021 H-09 a key that cannot be read constrains nothing, and is known for what it is', () => {
    expect([asked(['pni:10.0.0.2']), asked(['pin:']), asked(['pin:everywhere']), asked(['anti'])]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(
      ['pin:edge', 'pin:10.0.0.1', 'pin:::1', 'anti:auth', 'pni:10.0.0.1', 'pin:everywhere', 'anti:', 'Pin:edge'].map(isPlacementKey),
    ).toEqual([true, true, true, true, false, false, false, false]);
  });

  test('SUP-008 SUP-009 SUP-016 SUP-078 the catalog of the platform says where its services may run, and when they start', () => {
    const of = (name: string) => catalog.services.find(({ service_type }) => service_type === name);
    expect([of('captain'), of('acme'), of('proxy')]).toMatchObject([
      { start_priority: 0, singleton: true },
      { start_priority: 2, singleton: true },
      { start_priority: 20, singleton: true, placement: ['pin:edge'] },
    ]);
    const tiers = Object.entries(Object.groupBy(catalog.services, ({ start_priority }) => start_priority));
    expect(tiers.map(([tier, services = []]) => [Number(tier), services.map(({ service_type }) => service_type).sort()])).toEqual([
      [0, ['captain']],
      [2, ['acme']],
      [10, ['auth']],
      [15, ['sys']],
      [20, ['bus', 'proxy']],
      [30, ['cron', 'func', 'post', 'stat', 'storage', 'workflow']],
      [40, ['app']],
      [50, ['bff', 'web']],
    ]);
    for (const { placement } of catalog.services) expect((placement as string[]).every(isPlacementKey)).toBe(true);
  });
});
