import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { Platform } from '../../e2e/fixtures/platform.ts';
import { BrowserSession } from './browser-session.ts';
import { median, type Row } from './row.ts';

const PASSWORD = 'a bench of oak and iron 9';
const DIST = fileURLToPath(new URL('../../console/dist/', import.meta.url));

/** Starts, memory, sign-in and the proxied path of the whole platform, all plugins in one process. */
export async function platformRows(): Promise<Row[]> {
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
  const through = await each(200, () => person.fetch(`${platform.ready.gateway}/proxy/sys/v1/scopes/catalog`));
  const direct = await each(200, () => person.fetch(platform.ready.console.replace('console.', 'sys.').concat('/v1/scopes/catalog')));
  const edge = await each(200, () => person.fetch(`${platform.ready.console}/console.json`));
  await person.close();
  await platform.stop();
  const later = await timed(() => platform.start());
  const rss = residentOf(platform.ready.pid);
  return [
    { name: 'first start after install, databases created', value: first / 1_000, unit: 's', limit: 15 },
    { name: 'later start', value: later / 1_000, unit: 's', limit: 4 },
    { name: 'resident memory of the platform process, idle, all plugins', value: rss, unit: 'MB', limit: 300 },
    { name: 'sign-in: gateway, PAR, page, password (argon2id), code, token, session', value: median(signIns), unit: 'ms' },
    { name: 'one GET through ingress and gateway, median', value: through, unit: 'ms', peer: { name: 'through the ingress alone', value: direct } },
    { name: 'ingress and gateway together, added to one proxied GET, median', value: through - (direct - edgeShare(edge)), unit: 'ms', limit: 3, note: 'against the service behind a bare hop of the same kind' },
    { name: 'console first load, JavaScript, compressed', value: firstLoadKilobytes(), unit: 'kB', limit: 150 },
  ];
}

/** What one hop through the ingress costs by itself: a file from memory. */
const edgeShare = (edge: number) => edge;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function each(count: number, work: () => Promise<{ status: number }>): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < count + 20; turn++) {
    const start = performance.now();
    const { status } = await work();
    if (status >= 400) throw new Error(`answered ${status}`);
    if (turn >= 20) times.push(performance.now() - start);
  }
  return median(times);
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
