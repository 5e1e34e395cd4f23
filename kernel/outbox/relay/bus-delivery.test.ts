import { ProblemError } from '@platform/sdk';
import { expect, test } from 'vitest';
import { AUDIT_EVENT } from '../audit-event.ts';
import { deliverTo } from './bus-delivery.ts';
import type { OutboxRow } from './delivery.ts';

const row = (id: string, event_type = 'platform:probe:thing:created'): OutboxRow => ({
  id,
  idempotency_key: id,
  env_id: 'env-1',
  event_type,
  stream_family: 'probe',
  payload: { name: id },
  correlation_id: `corr-${id}`,
  publisher_subject: 'user:1',
  publisher_id_token: null,
  created_at: '2026-01-01T00:00:00.000Z',
  attempts: 0,
  refusals: 0,
});
const signal = new AbortController().signal;
const problem = (status: number, headers: Record<string, string> = {}) =>
  new ProblemError('bus', 'not_ready', { status, title: 'Not now', retry: 'later' }, { headers });

test('KRN-009 rows go to the bus’s produce API as one batch in their order, audit rows to the registry', async () => {
  const calls: unknown[] = [];
  const deliver = deliverTo({
    produceBatch: async (service, events) => {
      calls.push(['produce', service, events.map(event => (event as { idempotency_key: string }).idempotency_key)]);
      return { results: events.map((_, index) => ({ message_id: String(index) })) };
    },
    recordAudits: async (service, events) => void calls.push(['audit', service, events]),
  });
  const results = await deliver([row('1'), row('2'), row('3', AUDIT_EVENT), row('4', AUDIT_EVENT), row('5')], { service: 'probe', signal });
  expect(results).toEqual(Array.from({ length: 5 }, () => ({ ok: true })));
  expect(calls).toEqual([
    ['produce', 'probe', ['1', '2']],
    [
      'audit',
      'probe',
      [
        { env_id: 'env-1', correlation_id: 'corr-3', name: '3', idempotency_key: '3' },
        { env_id: 'env-1', correlation_id: 'corr-4', name: '4', idempotency_key: '4' },
      ],
    ],
    ['produce', 'probe', ['5']],
  ]);
});

test('an event on its way carries what the bus needs and nothing of the relay’s own bookkeeping', async () => {
  let sent: object = {};
  await deliverTo({
    produceBatch: async (_, [event]) => {
      sent = event as object;
      return { results: [{ message_id: '1' }] };
    },
    recordAudits: async () => undefined,
  })([row('1')], { service: 'probe', signal });
  expect(sent).toEqual({
    event_type: 'platform:probe:thing:created',
    env_id: 'env-1',
    stream_family: 'probe',
    payload: { name: '1' },
    idempotency_key: '1',
    correlation_id: 'corr-1',
    created_at: '2026-01-01T00:00:00.000Z',
  });
});

test('one refused event of a batch is that row’s failure alone; a short answer is nobody’s success', async () => {
  const answer = (results: readonly ({ message_id: string } | { error: string; status: number; detail?: string })[]) =>
    deliverTo({ produceBatch: async () => ({ results }), recordAudits: async () => undefined })([row('1'), row('2')], {
      service: 'probe',
      signal,
    });
  expect(await answer([{ message_id: '1' }, { error: 'invalid', status: 400, detail: 'not an event' }])).toEqual([
    { ok: true },
    { ok: false, status: 400, error: 'not an event' },
  ]);
  expect(await answer([{ message_id: '1' }])).toEqual([
    { ok: true },
    { ok: false, status: null, error: 'the answer is shorter than the batch' },
  ]);
});

test('a call that fails says its status and when to come back; one without an answer has none', async () => {
  const failing = (error: unknown) =>
    deliverTo({
      produceBatch: async () => {
        throw error;
      },
      recordAudits: async () => {
        throw error;
      },
    })([row('1'), row('2', AUDIT_EVENT)], { service: 'probe', signal });
  expect(await failing(problem(503, { 'retry-after': '7' }))).toEqual(
    Array.from({ length: 2 }, () => ({ ok: false, status: 503, error: 'not_ready: Not now', retryAfterS: 7 })),
  );
  expect(await failing(new Error('broke off'))).toEqual(Array.from({ length: 2 }, () => ({ ok: false, status: null, error: 'broke off' })));
  expect(await failing(problem(400))).toEqual(Array.from({ length: 2 }, () => ({ ok: false, status: 400, error: 'not_ready: Not now' })));
});

test('KRN-011 of a run of audit rows the registry refuses, each is sent for itself and the bad one alone fails', async () => {
  const calls: string[][] = [];
  const results = await deliverTo({
    produceBatch: async () => ({ results: [] }),
    recordAudits: async (_, events) => {
      const keys = events.map(event => (event as { idempotency_key: string }).idempotency_key);
      calls.push(keys);
      if (keys.includes('2')) throw problem(400);
    },
  })([row('1', AUDIT_EVENT), row('2', AUDIT_EVENT), row('3', AUDIT_EVENT)], { service: 'probe', signal });
  expect(results.map(({ ok }) => ok)).toEqual([true, false, true]);
  expect(calls).toEqual([['1', '2', '3'], ['1'], ['2'], ['3']]);
});
