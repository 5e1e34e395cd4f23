import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startEmbeddedPostgres } from './embedded-postgres.ts';
import { eventually } from '../fixtures/eventually.ts';
import { TestCluster } from '../fixtures/test-cluster.ts';
import { PostgresGuard } from './postgres-guard.ts';

test('a server that dies under a living host comes back on its port, with what was committed, and the pools find it', async () => {
  const cluster = await TestCluster.start();
  const pool = await cluster.pool('billing');
  await pool.sql`create table notes (text text)`;
  await pool.sql`insert into notes values ('kept')`;
  const tls = await cluster.authority.leaf('postgres');
  const guard = new PostgresGuard(cluster.postgres, () => startEmbeddedPostgres({ dataDir: cluster.dataDir, tls }));
  try {
    const { pid, port } = guard.server;
    process.kill(pid, 'SIGKILL');
    await eventually(() => guard.server.pid).not.toBe(pid);
    expect(guard.server.port).toBe(port);
    await eventually(() =>
      pool.sql<{ text: string }[]>`select text from notes`.then(
        rows => rows[0]?.text,
        () => undefined,
      ),
    ).toBe('kept');
    expect(await guard.admin()`select 1 as one`).toHaveLength(1);
  } finally {
    await pool.close(0);
    await guard[Symbol.asyncDispose]();
    rmSync(cluster.dataDir, { recursive: true, force: true });
  }
});
