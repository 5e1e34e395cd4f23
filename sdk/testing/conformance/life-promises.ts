import { type AnyContract, gateActions } from '@platform/sdk';
import { pageDefinition } from '@platform/kernel/http/pages/page-definition';
import { expect, test } from 'vitest';
import type { BootedHost } from '../boot.ts';
import { as } from '../persona.ts';
import { type ConformanceSubject, sample } from './conformance-subject.ts';
import { HeldRequest } from './held-request.ts';
import { ownTables, rowCounts } from './rows.ts';
import { openTriesOf, triesOf } from './tries.ts';

/** What every service must do from its start to its end. */
export function lifePromises(subject: ConformanceSubject): void {
  const { base } = subject.contract;

  test('health reports the build, readiness every check, and every page resolves', async () => {
    await subject.use(async host => {
      const health = await host.fetch('/v1/health');
      expect(health.json).toMatchObject({ service: base.id, build: 'test' });
      expect((await readiness(host)).slice(0, 2)).toEqual([200, 'ready']);
      for (const name of Object.keys(host.manifest.pages))
        expect(pageDefinition(host.manifest, name)).toMatchObject({ schema: 'platform.admin-ui/1', page: name });
    });
  });

  test('migrations run a second time and change nothing', async () => {
    await subject.use(async host => {
      const before = [await shapeOf(host), await rowCounts(host)];
      await host.process.instances.get(base.id)?.migrate();
      expect([await shapeOf(host), await rowCounts(host)]).toEqual(before);
    });
  });

  test.each([['database'], ['key-value']] as const)(
    'without its %s it says that it is not ready, fails nobody inside, and serves again by itself',
    async store => {
      await subject.use(async host => {
        const reads = subject.gated.filter(([, { method }]) => method === 'GET').slice(0, 5);
        const before = await answersOf(host, subject, reads);
        host.part(store, true);
        const check = store === 'database' ? 'database' : 'key_value';
        await expect.poll(async () => await readiness(host)).toMatchObject([503, 'not_ready', { [check]: { ok: false } }]);
        // What it still knows it may say; what it cannot know it says in words that tell the caller to come again.
        const during = await answersOf(host, subject, reads);
        expect(during.filter(([, status]) => status === 500)).toEqual([]);
        host.part(store, false);
        await expect.poll(async () => (await readiness(host)).slice(0, 2)).toEqual([200, 'ready']);
        // Each connection comes back by itself: the service serves again when its routes answer as before.
        await expect.poll(async () => statuses(await answersOf(host, subject, reads))).toEqual(statuses(before));
      });
    },
  );

  test('draining under load finishes what was begun, refuses new work with 503 and Retry-After, and ends', () => drainsUnderLoad(subject));
}

/** Throws where a drain does not wait for a request that is under way, or the request ends worse for it. */
export async function drainsUnderLoad(subject: ConformanceSubject): Promise<void> {
  await subject.use(async host => {
    const tries = [...triesOf(subject).filter(({ persona }) => persona.kind === 'user'), ...openTriesOf(subject)];
    const begun = await HeldRequest.begin(host, tries);
    const isExcepted = subject.exceptions.unheld !== undefined;
    expect(begun !== undefined || tries.length === 0, 'no request of it can be held: say in `unheld` why').toBe(!isExcepted);
    let isDrained = false;
    const drained = host.process.drain().then(() => (isDrained = true));
    if (!begun) await drained;
    await expect.poll(async () => (await host.fetch('/openapi.json')).status).toBe(503);
    const refused = await host.fetch('/openapi.json');
    expect([refused.json['code'], typeof refused.headers['retry-after']]).toEqual(['draining', 'string']);
    if (begun) {
      expect(isDrained).toBe(false);
      const { status, json } = await begun.finish();
      expect(status === 500 || json['code'] === 'draining' ? [status, json] : 'answered').toBe('answered');
    }
    await drained;
    await host[Symbol.asyncDispose]();
  });
}

type Answers = readonly (readonly [name: string, status: number, json: unknown])[];

/** What each of these reads answers to somebody who may do it. */
async function answersOf(host: BootedHost<AnyContract>, subject: ConformanceSubject, reads: ConformanceSubject['gated']): Promise<Answers> {
  const answers: [string, number, unknown][] = [];
  for (const [name, asked] of reads) {
    const persona = as.user(...(gateActions(asked.options.gate) ?? []).map(action => subject.scope(action)));
    const { status, json } = await host.fetch(`${sample(asked)}?target_env_id=${persona.envId}`, { persona });
    answers.push([name, status, json]);
  }
  return answers;
}

function statuses(answers: Answers): unknown {
  return answers.map(([name, status]) => [name, status]);
}

/** Status, word and checks of the readiness door. */
async function readiness(host: BootedHost<AnyContract>): Promise<[number, unknown, unknown]> {
  const { status, json } = await host.fetch('/v1/readiness');
  return [status, json['status'], json['checks']];
}

/** Every column of the service's own tables with its type. */
async function shapeOf(host: BootedHost<AnyContract>): Promise<unknown> {
  const tables = await ownTables(host);
  const { raw } = await host.pool();
  return raw`
    select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
    where table_schema = current_schema() and table_name = any(${tables}) order by 1, 2`;
}
