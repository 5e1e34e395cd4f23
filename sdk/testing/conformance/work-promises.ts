import { type AnyContract, isProblem } from '@platform/sdk';
import { expect, test } from 'vitest';
import type { BootedHost } from '../boot.ts';
import { as } from '../persona.ts';
import type { ConformanceSubject } from './conformance-subject.ts';
import { rowCounts } from './rows.ts';
import { sampleOf } from './sample.ts';
import { type Try, triesOf } from './tries.ts';

/** Long beside what a request takes that waits for nothing. */
const PATIENCE_MS = 5_000;

type Answer = { readonly value: unknown } | { readonly refused: string } | { readonly broken: string };

/** That handlers do what their routes say: every one is called with what its contract asks for. */
export function workPromises(subject: ConformanceSubject): void {
  test('every gated route answers a request that fits, or refuses it by name; none fails inside', async () => {
    await subject.use(async host => {
      const broken: string[] = [];
      for (const each of triesOf(subject)) {
        const answer = await ask(host, each);
        if ('broken' in answer) broken.push(`${each.name}: ${answer.broken}`);
      }
      expect(broken.join('\n')).toBe('');
    });
  });

  test('what a page lists is read, a row at least of each, and every row has the columns of the page', () => listsRows(subject));

  test('G-K-03 a POST that comes again under its key is answered as the first time, and changes nothing', async () => {
    await subject.use(async host => {
      for (const each of triesOf(subject).filter(
        ({ route }) => route.method === 'POST' && (route.options.idempotency ?? 'kernel') === 'kernel',
      )) {
        const headers = { 'idempotency-key': `conformance-${each.name}` };
        const first = await ask(host, each, headers);
        if (!('value' in first)) continue;
        const before = await rowCounts(host);
        expect([each.name, await ask(host, each, headers)]).toEqual([each.name, JSON.parse(JSON.stringify(first))]);
        expect([each.name, await rowCounts(host)]).toEqual([each.name, before]);
      }
    });
  });

  test('an event is handled, and one that comes twice takes effect once', () => handlesEvents(subject));
}

/** Throws where a page lists nothing, or rows without its columns. */
export async function listsRows(subject: ConformanceSubject): Promise<void> {
  const { rows, unlisted = {} } = subject.exceptions;
  await subject.use(async host => {
    const columns = columnsBySource(host);
    const listed = triesOf(subject).filter(({ name, route }) => route.method === 'GET' && name in columns);
    const params = (await rows?.(host, as.user().envId)) ?? {};
    const bare: string[] = [];
    for (const each of listed) {
      const answer = await ask(host, { ...each, input: { ...each.input, params: params[each.name] ?? each.input.params } });
      const { items = [] } = 'value' in answer ? (answer.value as { items?: readonly Record<string, unknown>[] }) : {};
      if (items.length === 0) bare.push(each.name);
      for (const row of items)
        expect([each.name, columns[each.name]?.filter(column => !((column.split('.')[0] as string) in row))]).toEqual([each.name, []]);
    }
    expect(bare.toSorted(), 'make rows of these with `rows`, or say in `unlisted` why there can be none').toEqual(
      Object.keys(unlisted).toSorted(),
    );
  });
}

/** Throws where the first delivery of an event fails, or the second one changes anything. */
export async function handlesEvents(subject: ConformanceSubject): Promise<void> {
  const { unhandled = {} } = subject.exceptions;
  await subject.use(async host => {
    const failed: string[] = [];
    for (const { event } of Object.values(host.manifest.consumes)) {
      const payload = subject.payloadOf(event);
      if (payload === undefined) continue;
      const deliver = () => host.deliver(event, as.user().envId, sampleOf(payload) as object, { id: `conformance-${event}` });
      try {
        await deliver();
      } catch (error) {
        failed.push(event in unhandled ? event : `${event}: ${error instanceof Error ? error.message : String(error)}`);
        continue;
      }
      const before = await rowCounts(host);
      await deliver();
      expect([event, await rowCounts(host)]).toEqual([event, before]);
    }
    expect(failed.toSorted(), 'a handler takes what its event promises; say in `unhandled` why one cannot here').toEqual(
      Object.keys(unhandled).toSorted(),
    );
  });
}

async function ask(host: BootedHost<AnyContract>, { name, persona, input }: Try, headers: Record<string, string> = {}): Promise<Answer> {
  const call = (host.by(persona) as unknown as Record<string, (input: object) => Promise<unknown>>)[name];
  try {
    return { value: await call?.({ ...input, headers, signal: AbortSignal.timeout(PATIENCE_MS) }) };
  } catch (error) {
    if (isProblem(error) && error.status !== 500) return { refused: error.code };
    return {
      broken: error instanceof Error ? `${error.message}${error.cause instanceof Error ? `: ${error.cause.message}` : ''}` : String(error),
    };
  }
}

/** The columns of every table that a page draws, by the route it reads. */
function columnsBySource({ manifest }: BootedHost<AnyContract>): Readonly<Record<string, readonly string[]>> {
  const tables = Object.values(manifest.pages).flatMap(page => tablesIn(page));
  return Object.fromEntries(tables.map(({ source, columns }) => [source, columns.map(({ field }) => field)]));
}

interface Table {
  readonly source: string;
  readonly columns: readonly { readonly field: string }[];
}
function tablesIn(part: unknown): Table[] {
  if (typeof part !== 'object' || part === null) return [];
  const own = 'source' in part && 'columns' in part ? [part as Table] : [];
  return [...own, ...Object.values(part).flatMap(tablesIn)];
}
