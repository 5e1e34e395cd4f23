import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:net';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { eventually } from '../fixtures/eventually.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts';
import { killedLauncher } from '../fixtures/killed-launcher.ts';
import { TestAuthority } from '../fixtures/test-authority.ts';
import { TestCluster } from '../fixtures/test-cluster.ts';
import { driver } from './postgres-driver.ts';
import { isAlive, readRecord, recordOf } from '../process-record.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 60_000 });

const LAUNCHER = fileURLToPath(new URL('../fixtures/launcher.ts', import.meta.url));

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await TestCluster.start();
});
afterAll(() => cluster[Symbol.asyncDispose]());

/** Tries to log in and read one row. */
async function login(user: string, database: string, ssl: object | false): Promise<string> {
  const sql = driver({
    host: '127.0.0.1',
    port: cluster.postgres.port,
    user,
    database,
    ssl,
    max: 1,
    connect_timeout: 3,
    backoff: () => 0.05,
  });
  try {
    const [row] = await sql`select current_user as me`;
    return `in as ${row?.['me']}`;
  } catch (error) {
    return String((error as { code?: string }).code);
  } finally {
    await sql.end({ timeout: 0 });
  }
}

describe('who gets in', () => {
  beforeAll(async () => {
    await cluster.pool('billing');
    await cluster.pool('orders');
  });

  test('a service with its own certificate is its own role', async () => {
    expect(await login('platform_billing', 'platform', { ...(await cluster.authority.leaf('svc.billing')), servername: 'localhost' })).toBe(
      'in as platform_billing',
    );
  });

  test('its certificate opens no other role, not the superuser, and no other database', async () => {
    const billing = { ...(await cluster.authority.leaf('svc.billing')), servername: 'localhost' };
    expect(await login('platform_orders', 'platform', billing)).toBe('28000');
    expect(await login('postgres', 'platform', billing)).toBe('28000');
    expect(await login('platform_billing', 'postgres', billing)).toBe('28000');
    expect(await login('platform_billing', 'template1', billing)).toBe('28000');
  });

  test('no certificate, a certificate of another root, and plain text are refused', async () => {
    const { ca } = await cluster.authority.leaf('svc.billing');
    const stranger = await (await TestAuthority.create('test root')).leaf('svc.billing');
    expect(await login('platform_billing', 'platform', { ca, servername: 'localhost' })).toBe('28000');
    expect(await login('platform_billing', 'platform', { ...stranger, ca, servername: 'localhost' })).toMatch(
      /^(ERR_SSL|ECONNRESET|EPIPE)/,
    );
    expect(await login('platform_billing', 'platform', false)).toBe('28000');
  });

  test('a client that trusts another root does not talk to the server', async () => {
    const { ca } = await (await TestAuthority.create('test root')).leaf('x');
    expect(
      await login('platform_billing', 'platform', { ...(await cluster.authority.leaf('svc.billing')), ca, servername: 'localhost' }),
    ).toMatch(/CERT|SELF_SIGNED|UNABLE/);
  });

  test('nothing below TLS 1.3 is spoken', async () => {
    const { ca } = await cluster.authority.leaf('svc.billing');
    expect(await login('platform_billing', 'platform', { ca, servername: 'localhost', maxVersion: 'TLSv1.2' })).toMatch(/^ERR_SSL/);
  });

  test('the socket of the administrator lies in a folder closed to others', () => {
    expect(statSync(join(cluster.dataDir, 'run', 'pg')).mode & 0o077).toBe(0);
    expect(statSync(join(cluster.dataDir, 'pg')).mode & 0o077).toBe(0);
  });
});

test('a committed write is on the disk before it is acknowledged', async () => {
  const rows = await cluster.postgres.admin()`select name, setting from pg_settings
      where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums')`;
  expect(rows.map(row => row['setting'])).toEqual(['on', 'on', 'on', 'on']);
});

test('renewed certificates are served to new connections while old ones live on', async () => {
  const pool = await cluster.pool('renewal', { max: 1 });
  const [before] = await pool.raw`select pg_backend_pid() as pid`;
  const renewed = await cluster.authority.leaf('postgres');
  await cluster.postgres.reloadTls(renewed);
  expect(await servedSerial(cluster.postgres.port)).toBe(renewed.serial);
  expect(await pool.raw`select pg_backend_pid() as pid`).toEqual([before]);
});

test('a key that does not belong to its certificate is refused before the server sees it', async () => {
  const [one, other] = [await cluster.authority.leaf('postgres'), await cluster.authority.leaf('postgres')];
  await expect(cluster.postgres.reloadTls({ ...one, key: other.key })).rejects.toMatchObject({ code: 'tls_mismatch' });
  expect(await login('platform_none', 'platform', { ...(await cluster.authority.leaf('svc.none')), servername: 'localhost' })).toBe(
    '28000',
  );
});

test('what a killed host left running is adopted with its data, and ends with stop', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const tls = await cluster.authority.leaf('postgres');
  writeFileSync(join(dataDir, 'tls.json'), JSON.stringify(tls), { mode: 0o600 });
  const pid = await killedLauncher(dataDir, 'postgres');
  const left = recordOf(pid);
  expect(isAlive(left)).toBe(true);

  const adopted = await startEmbeddedPostgres({ dataDir, tls });
  expect(adopted.pid).toBe(pid);
  await adopted.admin()`create table kept as select 42 as answer`;
  await adopted.stop();
  expect(isAlive(left)).toBe(false);

  const again = await startEmbeddedPostgres({ dataDir, tls });
  expect(again.pid).not.toBe(pid);
  expect(await again.admin()`select answer from kept`).toEqual([{ answer: 42 }]);
  await again.stop();
  rmSync(dataDir, { recursive: true });
});

test('a server that was killed itself comes back with every committed row, whatever its lock file says', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const tls = await cluster.authority.leaf('postgres');
  const first = await startEmbeddedPostgres({ dataDir, tls });
  await first.admin()`create table kept as select n from generate_series(1, 1000) n`;
  const killed = recordOf(first.pid);
  process.kill(first.pid, 'SIGKILL');
  await eventually(() => isAlive(killed)).toBe(false);
  expect(existsSync(join(dataDir, 'pg', 'postmaster.pid'))).toBe(true);

  const second = await startEmbeddedPostgres({ dataDir, tls });
  expect(await second.admin()`select count(*)::int as rows from kept`).toEqual([{ rows: 1000 }]);
  await Promise.all([first.stop(), second.stop()]);
  rmSync(dataDir, { recursive: true });
});

test('F-29 a start that was killed while it made the cluster leaves nothing behind at the next one', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const tls = await cluster.authority.leaf('postgres');
  writeFileSync(join(dataDir, 'tls.json'), JSON.stringify(tls), { mode: 0o600 });
  const launcher = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LAUNCHER, dataDir, 'postgres'], { stdio: 'ignore' });
  const made = () => readdirSync(dataDir).filter(name => name.startsWith('pg-init-'));
  await eventually(() => made().flatMap(name => readdirSync(join(dataDir, name))).length).toBeGreaterThan(0);
  launcher.kill('SIGKILL');
  expect([made().length, existsSync(join(dataDir, 'pg'))]).toEqual([1, false]);
  const second = await startEmbeddedPostgres({ dataDir, tls });
  expect([made(), readdirSync(join(dataDir, 'run'))]).toEqual([[], ['pg', 'pg.json']]);
  await second.stop();
  rmSync(dataDir, { recursive: true });
});

test.skipIf(process.getuid?.() !== 0)(
  'F-29 a user id without a name gets its database, or is told in plain words that it needs one',
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
    const nameless = 54_321;
    chownSync(dataDir, nameless, nameless);
    writeFileSync(join(dataDir, 'tls.json'), JSON.stringify(await cluster.authority.leaf('postgres')), { mode: 0o644 });
    const launcher = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', LAUNCHER, dataDir, 'postgres'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      uid: nameless,
      gid: nameless,
    });
    let errors = '';
    launcher.stderr.on('data', (text: Buffer) => (errors += text.toString()));
    const [said] = (await Promise.race([once(launcher.stdout, 'data'), once(launcher, 'exit')])) as [Buffer | number];
    const server = Number(String(said));
    if (launcher.exitCode === null) {
      expect(isAlive(recordOf(server))).toBe(true);
      launcher.kill('SIGKILL');
      process.kill(server, 'SIGQUIT');
      await eventually(() => isAlive(recordOf(server))).toBe(false);
    } else expect(errors).toContain('has no name on this system, and the packaged database needs one');
    rmSync(dataDir, { recursive: true, force: true });
  },
);

test('a start that is called off leaves no process', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const abort = new AbortController();
  const starting = startEmbeddedPostgres({ dataDir, tls: await cluster.authority.leaf('postgres'), signal: abort.signal });
  starting.catch(() => undefined);
  const staging = () => readdirSync(dataDir).find(name => name.startsWith('pg-init-')) ?? '';
  // By then the server that initdb runs writes the first tables.
  await eventually(() => existsSync(join(dataDir, staging(), 'base', '1'))).toBe(true);
  const maker = readRecord(join(dataDir, 'run', 'pg.json.init'));
  abort.abort();
  await expect(starting).rejects.toThrow(/abort/i);
  expect(maker && isAlive(maker)).toBe(false);
  expect(readdirSync(dataDir).filter(name => name.startsWith('pg'))).toEqual([]);
  expect(readdirSync(join(dataDir, 'run'))).toEqual([]);
  rmSync(dataDir, { recursive: true });
});

test('a data directory with a long name gets its socket elsewhere', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'platform-test-'));
  if (process.getuid?.() === 0) (await import('node:fs')).chmodSync(parent, 0o711);
  const started: EmbeddedPostgres = await startEmbeddedPostgres({
    dataDir: join(parent, 'long'.repeat(25)),
    tls: await cluster.authority.leaf('postgres'),
  });
  const [row] = await started.admin()`select current_setting('unix_socket_directories') as at`;
  expect(row?.['at']).toContain(join(tmpdir(), 'platform-pg-'));
  await started.stop();
  expect(existsSync(String(row?.['at']))).toBe(false);
  rmSync(parent, { recursive: true });
});

/** The serial number of the certificate the server shows, by the protocol's own upgrade to TLS. */
async function servedSerial(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]));
  await once(socket, 'data');
  const { ca } = await cluster.authority.leaf('x');
  const secure: TLSSocket = tlsConnect({ socket, ca, servername: 'localhost' });
  await once(secure, 'secureConnect');
  const serial = secure.getPeerCertificate().serialNumber;
  secure.on('error', () => {}).destroy();
  return serial;
}
