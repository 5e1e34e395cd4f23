import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { Platform } from '../../../../e2e/fixtures/platform.ts';
import { BrowserSession } from '../faces/browser-session.ts';
import { DirectService } from '../../load/direct-service.ts';
import { median, type Row } from '../../row.ts';

const PASSWORD = 'a bench of oak and iron 9';
const DIST = fileURLToPath(new URL('../../../../console/dist/', import.meta.url));

/** Starts, memory, sign-in and the proxied path of the whole platform, all plugins in one process. */
export async function* platformRows(): AsyncGenerator<Row> {
  await using platform = new Platform({ split: false, pluginDirs: '' });
  const first = await timed(() => platform.start());
  const { email, password } = platform.firstStart;
  const person = new BrowserSession(platform.ready);
  await person.signIn(email, password, PASSWORD);
  const signIns: number[] = [];
  for (let turn = 0; turn < 8; turn++) {
    const other = new BrowserSession(platform.ready);
    signIns.push(await timed(() => other.signIn(email, PASSWORD, PASSWORD)));
    await other.close();
  }
  const path = '/v1/scopes/catalog';
  await using service = await DirectService.open(platform.dataDir, 'sys');
  const [through, direct] = await alternating(
    () => person.fetch(`${platform.ready.gateway}/proxy/sys${path}`),
    () => service.get(path),
  );
  await person.close();
  await platform.stop();
  const later = await timed(() => platform.start());
  const rss = residentOf(platform.ready.pid);
  yield* [
    { name: 'first start after install, databases created', value: first / 1_000, unit: 's', limit: 15 },
    { name: 'later start', value: later / 1_000, unit: 's', limit: 4 },
    { name: 'resident memory of the platform process, idle, all plugins', value: rss, unit: 'MB', limit: 300 },
    { name: 'sign-in: gateway, PAR, page, password (argon2id), code, token, session', value: median(signIns), unit: 'ms' },
    {
      name: 'one proxied GET through ingress and gateway, median',
      value: through,
      unit: 'ms',
      peer: { name: 'the service called directly over mutual TLS', value: direct },
    },
    { name: 'ingress and gateway together, added to one proxied GET, median', value: through - direct, unit: 'ms', limit: 3 },
    { name: 'console first load, JavaScript, compressed', value: firstLoadKilobytes(), unit: 'kB', limit: 150 },
  ];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Medians of two paths asked in turn, so that both meet the same machine. */
async function alternating(
  ...paths: readonly [() => Promise<{ status: number }>, () => Promise<{ status: number }>]
): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []];
  for (let turn = 0; turn < 320; turn++) {
    for (const [index, ask] of paths.entries()) {
      const start = performance.now();
      const { status } = await ask();
      if (status >= 400) throw new Error(`answered ${status}`);
      if (turn >= 20) times[index]?.push(performance.now() - start);
    }
  }
  return [median(times[0]), median(times[1])];
}

function residentOf(pid: number): number {
  const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1_024;
}

/** What the page itself loads: the entry script and what it imports at once. */
function firstLoadKilobytes(): number {
  const html = readFileSync(join(DIST, 'index.html'), 'utf8');
  const named = readdirSync(join(DIST, 'assets')).filter(name => name.endsWith('.js') && html.includes(name));
  return named.reduce((sum, name) => sum + brotliCompressSync(readFileSync(join(DIST, 'assets', name))).length, 0) / 1_000;
}
