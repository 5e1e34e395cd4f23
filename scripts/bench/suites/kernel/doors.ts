import { Platform } from '../../../../e2e/fixtures/platform.ts';
import { BrowserSession } from '../faces/browser-session.ts';
import { Crowd, type CrowdSize } from '../../load/crowd.ts';
import { median, quantile, type Row } from '../../row.ts';

const PASSWORD = 'a bench of oak and iron 9';
/** How many times as long an answer may take as on a quiet platform (F-17). */
const FACTOR = 5;
const ROUNDS = 150;
const SIGN_INS = 8;
const CROWD: CrowdSize = { streams: 2_000, slowBodies: 300, expecting: 1_000, asterisks: 1_000, longPolls: 200 };

/** What a service answers while streams, slow bodies, long polls and odd requests are at its door, beside a quiet one (F-16, F-17). */
export async function* doorRows(): AsyncGenerator<Row> {
  await using platform = new Platform({ split: false, pluginDirs: '' });
  await platform.start();
  const { email, password } = platform.firstStart;
  const person = new BrowserSession(platform.ready);
  await person.signIn(email, password, PASSWORD);
  const services = platform.ready.plugins;
  const quiet = await measured(platform, person, services, email);
  await using crowd = await Crowd.gather(platform.ready, person, CROWD);
  const loaded = await measured(platform, person, services, email);
  const seen = await crowd.seen();
  await person.close();
  const note = `${seen.streams} streams, ${seen.slowBodies} slow bodies, ${seen.longPolls} long polls open; ${seen.expecting} Expect and ${seen.asterisks} OPTIONS * answered`;
  yield* [
    beside(
      'health of every service through the edge, p99, with the crowd',
      quantile(loaded.health, 0.99),
      quantile(quiet.health, 0.99),
      note,
    ),
    beside(
      'who is signed in, through gateway and store, p99, with the crowd',
      quantile(loaded.session, 0.99),
      quantile(quiet.session, 0.99),
    ),
    beside('a whole sign-in, median, with the crowd', median(loaded.signIn), median(quiet.signIn)),
    { name: 'requests that failed while the crowd was there', value: loaded.failed, unit: 'requests', limit: 0 },
  ];
}

const beside = (name: string, value: number, quiet: number, note?: string): Row => ({
  name,
  value,
  unit: 'ms',
  limit: Math.round(FACTOR * quiet * 10) / 10,
  peer: { name: 'quiet', value: quiet },
  ...(note ? { note } : {}),
});

interface Measured {
  readonly health: number[];
  readonly session: number[];
  readonly signIn: number[];
  failed: number;
}

async function measured({ ready }: Platform, person: BrowserSession, services: readonly string[], email: string): Promise<Measured> {
  const found: Measured = { health: [], session: [], signIn: [], failed: 0 };
  const { port } = new URL(ready.console);
  const ask = async (times: number[], url: string) => {
    const start = performance.now();
    const { status } = await person.fetch(url);
    if (status !== 200) found.failed += 1;
    times.push(performance.now() - start);
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (const service of services) await ask(found.health, `https://${service}.ops.sys.localhost:${port}/v1/health`);
    await ask(found.session, `${ready.gateway}/auth/session`);
  }
  for (let turn = 0; turn < SIGN_INS; turn++) {
    const other = new BrowserSession(ready);
    const start = performance.now();
    await other.signIn(email, PASSWORD, PASSWORD).catch(() => {
      found.failed += 1;
    });
    found.signIn.push(performance.now() - start);
    await other.close();
  }
  return found;
}
