import { fork, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { as, boot, type BootedHost } from '@platform/testing';
import { makeCsr } from '@platform/kernel/identity/certificates/authority';
import { freePort } from '@platform/kernel/storage/free-port';
import type { certificateAuthority } from '@platform/certificate-authority/contract';
import plugin from '@platform/certificate-authority/plugin';
import { pebble } from '../../../plugins/certificate-authority/test/fixtures/upstream.ts';
import { cpuUs } from '../edge/process-cpu.ts';
import type { Load } from '../load/acme-load.ts';
import type { Row, Size } from '../row.ts';

const COUNTS = { short: { leafs: 1_000, orders: 300 }, long: { leafs: 10_000, orders: 3_000 } };
const AT_ONCE = 16;
const NAME = 'bench.localhost';
/** The certificate authority: leafs that are signed, logged and kept, and whole orders beside pebble, which keeps nothing. */
export async function* authorityRows(size: Size): AsyncGenerator<Row> {
  const of = COUNTS[size];
  await using host = await boot(plugin);
  const client = host.by(as.machine('bench'));
  const { csr } = await makeCsr('pq', 'bench');
  const leafs = async (count: number) => {
    let left = count;
    const one = async () => {
      while (left-- > 0) await client.issueClientCertificate({ body: { service_name: 'bench', csr } });
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  };
  await leafs(100);
  const [began, cpu] = [performance.now(), process.cpuUsage()];
  await leafs(of.leafs);
  const { user, system } = process.cpuUsage(cpu);
  yield {
    name: 'ML-DSA-65 leafs signed, logged and stored, 16 at a time',
    value: (of.leafs * 1_000) / (performance.now() - began),
    unit: '/s',
    atLeast: 400,
    note: `${Math.round((user + system) / of.leafs)} µs of CPU each`,
  };
  yield await orders(host, of.orders);
}

async function orders(host: BootedHost<typeof certificateAuthority>, count: number): Promise<Row> {
  const { authority } = host.stores;
  const { csr: pem } = await makeCsr('classical', NAME, [`dns:${NAME}`]);
  const csr = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64').toString('base64url');
  const of = { orders: count, atOnce: AT_ONCE, csr, name: NAME };
  const own = {
    port: host.process.port,
    host: 'acme.ops.sys.localhost',
    servername: 'acme.ops.sys.localhost',
    directory: '/acme/directory',
    ca: authority.pq.files.rootCertificate,
  };
  const mine = await measured({ ...of, ...own }, async () => {
    const { user, system } = process.cpuUsage();
    return user + system;
  });
  const row = { name: 'full ACME orders, 16 at a time', value: mine.perSecond, unit: '/s' };
  const binaries = pebble();
  const note = `${Math.round(mine.cpuUs)} µs of CPU each`;
  if (!binaries) return { ...row, note: `${note}; pebble cannot be had here` };
  const home = mkdtempSync(join(tmpdir(), 'platform-bench-'));
  const leaf = await authority.classical.issue({ commonName: 'localhost', names: ['dns:localhost'], usages: ['server'], days: 1 });
  const [port, management] = [await freePort(), await freePort()];
  for (const [name, text] of Object.entries({ cert: leaf.chain, key: leaf.key as string })) writeFileSync(join(home, name), text);
  const config = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: join(home, 'cert'),
    privateKey: join(home, 'key'),
    httpPort: 5_002,
    tlsPort: 5_001,
  };
  writeFileSync(join(home, 'config.json'), JSON.stringify({ pebble: config }));
  const server = spawn(binaries.server, ['-config', join(home, 'config.json')], {
    stdio: 'ignore',
    env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_VA_ALWAYS_VALID: '1', PEBBLE_WFE_NONCEREJECT: '0', PEBBLE_AUTHZREUSE: '0' },
  });
  try {
    await delay(1_000);
    const theirs = await measured(
      { ...of, port, host: `localhost:${port}`, servername: 'localhost', directory: '/dir', ca: authority.classical.files.rootCertificate },
      async () => cpuUs(server.pid as number),
    );
    return {
      ...row,
      peer: { name: 'pebble', value: theirs.perSecond },
      timesPeer: 1,
      note: `${note}, ${Math.round(theirs.cpuUs)} pebble's, which keeps all of it in memory and writes nothing`,
    };
  } finally {
    server.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true });
  }
}

/** One load from a process of its own; CPU of the server between its warm-up and its end. */
async function measured(load: Load, cpuUs: () => Promise<number>): Promise<{ perSecond: number; cpuUs: number }> {
  const child = fork(fileURLToPath(new URL('../load/acme-load.ts', import.meta.url)), [JSON.stringify(load)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  let before = 0;
  return new Promise((resolve, reject) => {
    child.on('message', message => {
      if (message === 'warm') return void cpuUs().then(used => (before = used), reject);
      const { perSecond } = message as { perSecond: number };
      cpuUs().then(used => resolve({ perSecond, cpuUs: (used - before) / load.orders }), reject);
    });
    child.on('error', reject);
    child.on('exit', code => code !== 0 && reject(new Error(`the load ended with ${code}`)));
  });
}
