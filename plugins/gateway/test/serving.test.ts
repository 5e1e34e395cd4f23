import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { readSettings } from '@platform/kernel/host/boot/settings';
import { SYSTEM } from '@platform/sdk';
import { as, boot, type BootedHost, describeConformance, manifestOf, readRecord } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gateway } from '../contract/index.ts';
import plugin from '../src/plugin.ts';

const environment = { PLATFORM_BFF_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
const stubs = { registry: { listVerticals: async () => ({ items: [], next_cursor: null }) } };
let host: BootedHost<typeof gateway>;
beforeAll(async () => {
  host = (await boot(plugin, { environment, stubs })) as BootedHost<typeof gateway>;
}, 120_000);
afterAll(() => host[Symbol.asyncDispose]());

describeConformance(plugin, { environment, stubs });

test('GWY-047 health is for everybody, and names the build', async () => {
  expect(await host.fetch('/v1/health')).toMatchObject({ status: 200, json: { status: 'ok', build: 'test' } });
});

test('GWY-048 readiness is for everybody, and asks the key-value store: without it the gateway is not ready, and serves', async () => {
  expect((await host.fetch('/readiness')).json).toMatchObject({ checks: { key_value: { ok: true }, delegator: { ok: true } } });
  const { pid } = readRecord(join(host.stores.dataDir, 'run', 'kv.json')) as { pid: number };
  process.kill(pid, 'SIGSTOP');
  try {
    expect(await host.fetch('/readiness')).toMatchObject({
      status: 503,
      json: { status: 'not_ready', checks: { key_value: { ok: false } } },
    });
    expect((await host.fetch('/v1/health')).status).toBe(200);
    expect((await host.fetch('/metrics')).status).toBe(200);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await expect.poll(async () => (await host.fetch('/readiness')).json['checks']).toMatchObject({ key_value: { ok: true } });
}, 30_000);

test('GWY-049 the gauges are for everybody, and say what was promised', async () => {
  const { status, text } = await host.fetch('/metrics');
  expect([status, text.trim().split('\n')]).toEqual([
    200,
    ['bff_up 1', 'bff_build_info{build="test"} 1', 'bff_session_scan_max 1000', 'bff_subscription_buffer 256', 'bff_chat_buffer 64'],
  ]);
});

test('GWY-084 production starts with a key of its own alone: none is built in', () => {
  const faults = (value?: string) =>
    readSettings(manifestOf(gateway, '0.0.0-test'), value === undefined ? {} : { PLATFORM_BFF_ENCRYPTION_KEY: value }, true).faults.map(
      ({ variable }) => variable,
    );
  expect([faults(), faults(''), faults(environment.PLATFORM_BFF_ENCRYPTION_KEY)]).toEqual([
    ['PLATFORM_BFF_ENCRYPTION_KEY'],
    ['PLATFORM_BFF_ENCRYPTION_KEY'],
    [],
  ]);
});

test('the devices of people are for a machine that proves itself: a person with the scope is refused', async () => {
  const body = { env_id: SYSTEM.envId, user_id: 'somebody' };
  expect(await host.by(as.machine('post', 'bff:devices:read')).pushDevices({ body })).toEqual({ devices: [] });
  await expect(host.by(as.user('bff:devices:read')).pushDevices({ body })).rejects.toMatchObject({ status: 403 });
  await expect(host.by(as.machine('shop', 'bus:produce')).pushDevices({ body })).rejects.toMatchObject({ status: 403 });
});

test('GWY-005 no event is declared, so none can be emitted', () => {
  expect(gateway.events).toEqual({});
});

test('GWY-007 it has no tables, and of its own it may only read at the registry and at identity', () => {
  expect(plugin.migrations).toBeUndefined();
  const { uses, workloads } = gateway.base;
  const own = [...uses.sys, ...uses.auth, ...workloads.delegator.sys];
  expect(own.filter(action => !/:(read|check)$/.test(action))).toEqual([]);
  // The directory of an environment is written for its staff alone, and by identity (GWY-041).
  expect(workloads.delegator.auth).toEqual(['scim:read', 'scim:write']);
});

test('GWY-102 every path is under /v1 or one of those that browsers know', () => {
  const paths = Object.values(gateway.routes).map(({ path }) => path);
  expect(paths.filter(path => !/^\/(v1\/|auth\/|delegate\/|subscribe(\/|$)|ws$|proxy\/|bff\/action\/|audit$|metrics$)/.test(path))).toEqual(
    [],
  );
  expect(Object.keys(gateway.base.aliases).sort()).toEqual(['/readiness']);
});
