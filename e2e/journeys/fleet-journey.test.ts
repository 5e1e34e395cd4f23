import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DistantMachine } from '../../scripts/faults/distant-machine.ts';
import { freePort } from '../../kernel/storage/free-port.ts';
import { Platform } from '../fixtures/platform.ts';

const VERTICALS = fileURLToPath(new URL('../verticals/lending', import.meta.url));
const SECOND = '127.0.0.2';
const THIRD = '127.0.0.3';
const eventually = <T>(read: () => T) => expect.poll(read, { timeout: 60_000, interval: 100 });

interface Instance {
  readonly service_type: string;
  readonly instance_key: string;
  readonly ip: string;
  readonly pid: number;
  readonly status: string;
}

/** A fleet: one process for each service, a machine kit, short windows. */
const platform = new Platform({ split: true, pluginDirs: VERTICALS });
const settings = {
  PLATFORM_CAPTAIN_UPGRADE_WINDOW_S: '1',
  PLATFORM_CAPTAIN_DRAIN_S: '5',
  PLATFORM_CAPTAIN_MACHINE_KIT: 'local',
  PLATFORM_CAPTAIN_MAX_MACHINES: '3',
  PLATFORM_CAPTAIN_PROVISION_PROFILE: 'manual',
};
let kv: Redis;
let port: number;
/** A machine that is cut off from the stores while other things happen. */
let third: DistantMachine;

/** A question on the control socket of a machine of the fleet. */
function ask<T>(method: string, path: string, body?: unknown, dataDir = platform.dataDir): Promise<T> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const outgoing = request(
      { socketPath: join(dataDir, 'run', 'captain.sock'), method, path, headers: { 'content-length': Buffer.byteLength(text) } },
      response => {
        let said = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (said += chunk));
        response.on('end', () => ((response.statusCode ?? 500) < 300 ? resolve(JSON.parse(said) as T) : reject(new Error(said))));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(text);
  });
}
const instances = async (service?: string): Promise<Instance[]> =>
  (await ask<{ items: Instance[] }>('GET', `/v1/captain/services${service ? `?service_type=${service}` : ''}`)).items;
const active = async (service: string): Promise<Instance[]> => (await instances(service)).filter(({ status }) => status === 'Active');

/** Through the ingress, once. */
function status(label: string): Promise<number | string> {
  const host = `${label}.ops.sys.localhost`;
  return new Promise(resolve => {
    const outgoing = httpsRequest(
      {
        host: '127.0.0.1',
        port,
        path: '/v1/health',
        servername: host,
        headers: { host: `${host}:${port}` },
        agent: false,
        rejectUnauthorized: false,
      },
      response => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve(response.statusCode === 200 ? 200 : `${response.statusCode} ${text}`));
      },
    );
    outgoing.on('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message));
    outgoing.end();
  });
}

/** Everything that was answered while something happened, by a client that does not try again. */
async function answersWhile(label: string, work: () => Promise<unknown>): Promise<Record<string, number>> {
  const seen: Record<string, number> = {};
  let done = false;
  const loop = async () => {
    while (!done) {
      const answer = String(await status(label));
      seen[answer] = (seen[answer] ?? 0) + 1;
    }
  };
  const loops = [loop(), loop(), loop()];
  await work();
  done = true;
  await Promise.all(loops);
  return seen;
}

/** A command of `platform`, as an operator types it. */
async function command(...args: string[]): Promise<{ code: number; text: string }> {
  const child = spawn(
    process.execPath,
    [
      '--experimental-ffi',
      '--disable-warning=ExperimentalWarning',
      fileURLToPath(new URL('../../kernel/main.ts', import.meta.url)),
      ...args,
    ],
    {
      env: { ...process.env, PLATFORM_DATA_DIR: platform.dataDir, PLATFORM_PROXY_HTTPS_PORT: String(port) },
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const code = await new Promise<number>(resolve => child.once('close', ended => resolve(ended ?? -1)));
  return { code, text };
}

beforeAll(async () => {
  Object.assign(process.env, settings);
  port = await freePort();
  await platform.start();
  port = Number(new URL(platform.ready.console).port);
  const password = readFileSync(join(platform.dataDir, 'keys', 'kv.password'), 'utf8').trim();
  const { port: store } = JSON.parse(readFileSync(join(platform.dataDir, 'run', 'kv.json'), 'utf8')) as { port: number };
  kv = new Redis({ host: '127.0.0.1', port: store, password });
}, 180_000);
afterAll(async () => {
  kv?.disconnect();
  await third?.[Symbol.asyncDispose]();
  await platform[Symbol.asyncDispose]();
  for (const name of Object.keys(settings)) delete process.env[name];
});

// It starts processes of its own whatever the mode is: once is enough.
describe.skipIf(process.env['PLATFORM_E2E_MODE'] !== 'split')('a fleet', () => {
  test('SUP-001 SUP-002 the supervisor starts every service in a process group of its own, and each is Active', async () => {
    const all = await instances();
    expect(all.filter(({ status: is }) => is !== 'Active')).toEqual([]);
    expect(all.map(({ service_type }) => service_type)).toEqual(
      expect.arrayContaining(['captain', 'acme', 'auth', 'sys', 'bus', 'proxy', 'bff', 'web', 'lending']),
    );
    const groups = all
      .filter(({ service_type }) => service_type !== 'captain')
      .map(({ pid }) => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]) === pid);
    expect(groups.every(Boolean)).toBe(true);
  });

  test('a third machine joins and serves, and is cut off from both stores: no request fails for it', async () => {
    const services = (await ask<{ items: { service_type: string }[] }>('GET', '/v1/captain/catalog')).items.map(each => each.service_type);
    third = await DistantMachine.join({ home: platform.dataDir, ip: THIRD, edgePort: port, services, kv });
    await ask('POST', '/v1/captain/start-services', { service_types: ['storage'] }, third.dataDir);
    await eventually(async () => (await active('storage')).map(({ ip }) => ip).sort()).toEqual(['127.0.0.1', THIRD]);
    const seen = await answersWhile('storage', async () => {
      third.part(true);
      await delay(2_000);
    });
    expect(Object.keys(seen)).toEqual(['200']);
  }, 120_000);

  test('SUP-005 SUP-041 no request fails while the gateway, the registry and the ingress are replaced', async () => {
    for (const [service, label] of [
      ['bff', 'bff'],
      ['sys', 'sys'],
      ['proxy', 'web'],
    ] as const) {
      const [before] = await active(service);
      const seen = await answersWhile(label, async () =>
        expect(await command('upgrade', service, '--wait')).toMatchObject({ code: 0, text: expect.stringContaining('complete') }),
      );
      const after = await active(service);
      expect([service, Object.keys(seen), after.length, after[0]?.pid === before?.pid]).toEqual([service, ['200'], 1, false]);
    }
  }, 120_000);

  test('SUP-084 a service that is killed serves again, and what is left of it is kept', async () => {
    const [before] = (await active('web')) as [Instance];
    process.kill(before.pid, 'SIGKILL');
    await eventually(async () => (await active('web')).filter(({ pid }) => pid !== before.pid).length).toBe(1);
    await eventually(() => status('web')).toBe(200);
    const lastWords = async () =>
      (await ask<{ items: { reason: string; pid: number }[] }>('GET', '/v1/captain/post-mortems?service_type=web')).items.find(
        ({ pid }) => pid === before.pid,
      )?.reason;
    await eventually(lastWords).toBe('ended (SIGKILL)');
  });

  test('a supervisor that is killed takes nothing along; the next one keeps every process, and replaces the ingress as before', async () => {
    const before = (await instances()).filter(({ service_type }) => service_type !== 'captain');
    const seen = await answersWhile('sys', async () => {
      await platform.kill();
      await delay(500);
      await platform.start();
    });
    const after = (await instances()).filter(({ service_type }) => service_type !== 'captain');
    expect([Object.keys(seen), after.map(({ pid }) => pid).sort()]).toEqual([['200'], before.map(({ pid }) => pid).sort()]);
    expect(Object.keys(await answersWhile('web', () => command('upgrade', 'proxy', '--wait')))).toEqual(['200']);
  }, 120_000);

  test('what was cut off is in turn for nobody after its thirty seconds, has ended nothing, and serves again when it is back', async () => {
    const there = async () => {
      const row = (await instances('storage')).find(({ ip }) => ip === THIRD);
      return { pid: row?.pid, status: row?.status, alive: existsSync(`/proc/${row?.pid}`) };
    };
    const before = await there();
    expect(before).toMatchObject({ status: 'Inactive', alive: true });
    const seen = await answersWhile('storage', async () => {
      third.part(false);
      await eventually(there).toEqual({ ...before, status: 'Active' });
    });
    expect(Object.keys(seen)).toEqual(['200']);
    // It is asked again: the one here dies, and nobody is refused once a second is over.
    const [here] = (await active('storage')).filter(({ ip }) => ip === '127.0.0.1');
    process.kill(here?.pid ?? 0, 'SIGKILL');
    await delay(1_000);
    expect(Object.keys(await answersWhile('storage', () => delay(1_000)))).toEqual(['200']);
    await eventually(async () => (await active('storage')).map(({ ip }) => ip).sort()).toEqual(['127.0.0.1', THIRD]);
  }, 120_000);

  test('H-03 SUP-051 SUP-056 SUP-100 a second machine joins when somebody approves it, serves, and is given back without a failed request', async () => {
    const second = join(platform.dataDir, 'machines', SECOND);
    const now = Date.now();
    const wait = (kind: string, ip: string) =>
      kv.hset(
        'captain:provision:pending',
        `${kind}:${ip}`,
        JSON.stringify({
          key: `${kind}:${ip}`,
          kind,
          reason: 'test',
          created_at: new Date(now).toISOString(),
          expires_at: new Date(now + 600_000).toISOString(),
        }),
      );
    await wait('provision', 'next');
    expect(await command('approve', 'provision:next')).toMatchObject({ code: 0 });
    await eventually(async () =>
      (await ask<{ items: { ip: string; base: boolean }[] }>('GET', '/v1/captain/machines')).items.map(({ ip, base }) => [ip, base]),
    ).toEqual([
      ['127.0.0.1', true],
      [THIRD, false],
      [SECOND, false],
    ]);
    await eventually(() => existsSync(join(second, 'data', 'run', 'captain.sock'))).toBe(true);
    // Of three machines one dies whole: after a second nobody is refused.
    await third.die((await instances()).filter(({ ip }) => ip === THIRD).map(({ pid }) => pid));
    await delay(1_000);
    expect(Object.keys(await answersWhile('storage', () => delay(1_000)))).toEqual(['200']);
    // What is one in the fleet stays one; anything else may stand on both.
    await expect(ask('POST', '/v1/captain/start-services', { service_types: ['acme'] }, join(second, 'data'))).rejects.toThrow(
      'singleton_violation',
    );
    await ask('POST', '/v1/captain/start-services', { service_types: ['web'] }, join(second, 'data'));
    await eventually(async () => (await active('web')).map(({ ip }) => ip).sort()).toEqual(['127.0.0.1', SECOND]);
    // The one here dies: requests go to the other machine.
    const [here] = (await active('web')).filter(({ ip }) => ip === '127.0.0.1');
    process.kill(here?.pid ?? 0, 'SIGKILL');
    await eventually(() => status('web')).toBe(200);
    await eventually(async () => (await active('web')).filter(({ pid }) => pid !== here?.pid).length).toBe(2);
    await wait('deprovision', SECOND);
    const seen = await answersWhile('web', async () => {
      expect(await command('approve', `deprovision:${SECOND}`)).toMatchObject({ code: 0 });
      await eventually(() => existsSync(second)).toBe(false);
    });
    expect([
      Object.keys(seen),
      (await instances()).filter(({ ip }) => ip === SECOND),
      await kv.lrange('captain:provision:order', 0, -1),
    ]).toEqual([['200'], [], ['127.0.0.1', THIRD]]);
  }, 180_000);

  test('SUP-099 an operator ends the machine over its socket, and everything goes', async () => {
    const pids = (await instances()).map(({ pid }) => pid);
    await ask('POST', '/v1/captain/shutdown', { reason: 'done' });
    await eventually(() =>
      pids.filter(pid => existsSync(`/proc/${pid}`) && !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))),
    ).toEqual([]);
  });
});
