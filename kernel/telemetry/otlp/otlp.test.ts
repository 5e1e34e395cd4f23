import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Histogram, Registry } from 'prom-client';
import { ManualClock } from '../../base/clock.ts';
import { eventually } from '../../storage/fixtures/eventually.ts';
import { traced, traceHeaders } from '../trace.ts';
import { metricsOf } from './otlp-metrics.ts';
import { openOtlp } from './open-otlp.ts';

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: object[];
  readonly status: { code: number };
}
/** A collector as the protocol describes it, with what it was sent. */
class Collector {
  readonly received: { path: string; headers: Record<string, unknown>; body: Record<string, unknown> }[] = [];
  status = 200;
  readonly #server: Server;
  constructor() {
    this.#server = createServer((req, res) => {
      let text = '';
      req
        .on('data', chunk => (text += chunk))
        .on('end', () => {
          if (this.status === 200) this.received.push({ path: req.url ?? '', headers: req.headers, body: JSON.parse(text) });
          res.writeHead(this.status, { 'content-type': 'application/json' }).end('{}');
        });
    });
  }
  async listen(): Promise<string> {
    await new Promise<void>(resolve => this.#server.listen(0, '127.0.0.1', () => resolve()));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }
  get spans(): Span[] {
    return this.received
      .filter(({ path }) => path === '/v1/traces')
      .flatMap(({ body }) =>
        (body['resourceSpans'] as { scopeSpans: { spans: Span[] }[] }[]).flatMap(({ scopeSpans }) =>
          scopeSpans.flatMap(({ spans }) => spans),
        ),
      );
  }
  close(): void {
    this.#server.close();
  }
}

const collector = new Collector();
const clock = new ManualClock();
const warned: object[] = [];
const log = { debug() {}, info() {}, warn: (fields: object) => void warned.push(fields), error() {} };
let exporter: NonNullable<Awaited<ReturnType<typeof openOtlp>>>;
beforeAll(async () => {
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: await collector.listen(), OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b' };
  exporter = (await openOtlp(environment, { process: 'p-1', build: 'b1', log, clock })) as typeof exporter;
});
afterAll(async () => {
  await exporter[Symbol.asyncDispose]();
  collector.close();
});

test('a request is one trace from service to service: the span of a call is the child of the one whose header came with it', async () => {
  let header: string | undefined;
  await traced('shop.createOrder', { 'platform.correlation_id': 'c-1' }, async () => {
    header = traceHeaders().traceparent;
  });
  await traced('bank.pay', {}, async () => undefined, header);
  await expect(traced('shop.fails', {}, async () => Promise.reject(new Error('no')), 'nonsense')).rejects.toThrow('no');
  await exporter.flush();
  const [outer, inner, failed] = collector.spans;
  expect(outer).toMatchObject({
    name: 'shop.createOrder',
    kind: 2,
    attributes: [{ key: 'platform.correlation_id', value: { stringValue: 'c-1' } }],
  });
  expect(inner).toMatchObject({ name: 'bank.pay', traceId: outer?.traceId, parentSpanId: outer?.spanId });
  expect(failed).toMatchObject({ name: 'shop.fails', status: { code: 2 } });
  expect(failed?.parentSpanId).toBeUndefined();
  expect(BigInt(outer?.endTimeUnixNano as string) >= BigInt(outer?.startTimeUnixNano as string)).toBe(true);
  expect(collector.received[0]?.headers['x-key']).toBe('a b');
});

test('a collector that refuses costs the spans of that time, one line in the log, and nothing else', async () => {
  collector.status = 503;
  const before = collector.spans.length;
  for (let n = 0; n < 3; n++) {
    await traced('shop.lost', {}, async () => undefined);
    await exporter.flush();
  }
  expect(warned).toHaveLength(1);
  expect(exporter.dropped).toBe(3);
  collector.status = 200;
  await traced('shop.kept', {}, async () => undefined);
  await exporter.flush();
  expect(collector.spans.slice(before).map(({ name }) => name)).toEqual(['shop.kept']);
});

test('metrics are sent at their pace: histograms with their own bounds, counted between two of them', async () => {
  const registry = new Registry();
  const histogram = new Histogram({ name: 'd', help: 'Durations', labelNames: ['op'], buckets: [1, 5], registers: [registry] });
  for (const value of [0.5, 2, 3, 9]) histogram.observe({ op: 'read' }, value);
  using _source = exporter.measure(() => metricsOf(registry, 1_000, 2_000));
  await clock.advance('16s');
  await eventually(async () => collector.received.filter(({ path }) => path === '/v1/metrics').length).toBe(1);
  const sent = collector.received.find(({ path }) => path === '/v1/metrics')?.body as {
    resourceMetrics: { scopeMetrics: { metrics: object[] }[] }[];
  };
  expect(sent.resourceMetrics[0]?.scopeMetrics[0]?.metrics).toEqual([
    {
      name: 'd',
      description: 'Durations',
      histogram: {
        aggregationTemporality: 2,
        dataPoints: [
          {
            startTimeUnixNano: '1000000000',
            timeUnixNano: '2000000000',
            attributes: [{ key: 'op', value: { stringValue: 'read' } }],
            count: '4',
            sum: 14.5,
            explicitBounds: [1, 5],
            bucketCounts: ['1', '2', '1'],
          },
        ],
      },
    },
  ]);
});

test('without its variable nothing is made, and a variable that is no URL says what to set', async () => {
  expect(await openOtlp({}, { process: 'p', build: 'b', log, clock })).toBeUndefined();
  await expect(openOtlp({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, { process: 'p', build: 'b', log, clock })).rejects.toThrow(
    'http://127.0.0.1:4318',
  );
});
