import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Operator } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import func from '../src/authoring/func-command.ts';
import { desk } from './fixtures/credit.ts';
import { asks } from './fixtures/components.ts';
import { ASK, ECHO, SPIN, TRAP, wat } from './fixtures/guests.ts';
import { ada, admin, ENV, type Host, measured, PROPERTY, published, refusal, run, statistics, uploaded, world } from './fixtures/world.ts';

let host: Host;
beforeAll(async () => {
  host = await world();
});
afterAll(() => host?.[Symbol.asyncDispose]());
beforeEach(() => Object.assign(desk, { asked: [], refuses: false, wait: undefined }));

/** A guest that gives this text back, whatever it is asked. */
const says = (text: string) => {
  const escaped = text.replaceAll('\\', '\\5c').replaceAll('"', '\\22');
  return wat(
    `(data (i32.const 64) "${escaped}") (func (export "hook") (param i32 i32) (result i64) (i64.or (i64.shl (i64.const 64) (i64.const 32)) (i64.const ${text.length})))`,
  );
};
const imports = { ask: '/v1/internal/score' };
const detail = (execution_id: string) => host.by(ada).getExecution({ params: { execution_id } });

test('FUN-001 FUN-022 FUN-023 FUN-028 FUN-034 FUN-035 a function runs by product or pinned, answers its result, and every run tells its fuel and duration', async () => {
  const module = await published(host, ECHO, { product: 'echo' });
  const byProduct = await run(host, 'echo', { context: { amount: 12 } });
  expect(byProduct).toMatchObject({
    module_id: module.module_id,
    hook: 'hook',
    status: 'completed',
    result: { amount: 12 },
    replayed: false,
  });
  const pinned = await host
    .by(ada)
    .executeModule({ params: { module_id: module.module_id }, body: { hook: 'hook', context: { amount: 12 }, idempotency_key: 'p' } });
  expect([pinned.module_id, pinned.result, pinned.fuel_used]).toEqual([module.module_id, { amount: 12 }, byProduct.fuel_used]);
  const told = (await host.events('platform:func:execution:completed', 2)).find(
    ({ payload }) => payload['execution_id'] === pinned.execution_id,
  );
  expect(told).toMatchObject({
    env_id: ENV,
    payload: { module_id: module.module_id, hook: 'hook', fuel_used: pinned.fuel_used, duration_ms: pinned.duration_ms },
  });
  const metrics = (await host.fetch('/v1/metrics', { as: await host.workload('func') })).text;
  expect(metrics).toMatch(/fuel_used_total\D+[1-9]/);
  expect(metrics).toMatch(/duration_ms_total/);
  const sql = await host.sql();
  expect([...(await sql`select event_type from outbox where payload->>'execution_id' = ${pinned.execution_id}`)]).toEqual([
    { event_type: 'platform:func:execution:completed' },
  ]);
});

test('FUN-001 a service’s own module runs the hook that is named, of those that it has', async () => {
  const by = as.machine('pricing', 'func:modules:read', 'func:modules:write', 'func:modules:execute');
  const answer = (hook: string, at: number) =>
    `(data (i32.const ${at}) "\\22${hook}\\22") (func (export "${hook}") (param i32 i32) (result i64) (i64.const ${(BigInt(at) << 32n) + BigInt(hook.length + 2)}))`;
  const bytes = wat(answer('before', 64) + answer('after', 128));
  const options = { targetEnvId: ENV };
  const body = {
    domain: 'credit',
    product: 'two-hooks',
    source_language: 'other',
    wasm_base64: Buffer.from(bytes).toString('base64'),
  } as const;
  const { module_id } = await host.by(by).uploadModule({ ...options, body: { ...body, hooks: ['before', 'after'] } });
  const ran = async (hook: string) => {
    const wanted = { ...options, params: { module_id }, body: { hook, context: {}, idempotency_key: hook } };
    return (await host.by(by).executeModule(wanted)).result;
  };
  await host.by(by).validateModule({ ...options, params: { module_id }, body: {} });
  await host.by(by).activateModule({ ...options, params: { module_id } });
  expect([await ran('before'), await ran('after')]).toEqual(['before', 'after']);
});

test('FUN-019 FUN-023 the hook protocol carries accept or reject with reason and directives; anything else is a trap', async () => {
  await published(host, ECHO, { product: 'malformed' });
  const reject = says('{"decision":"reject","reject_reason":"too poor","directives":[{"type":"notify","to":"ada"}],"result":{"n":1}}');
  await published(host, reject, { product: 'rule' });
  expect(await run(host, 'rule', { protocol: 'hook' })).toMatchObject({
    status: 'completed',
    decision: 'reject',
    reject_reason: 'too poor',
    directives: [{ type: 'notify', to: 'ada' }],
    result: { n: 1 },
  });
  await published(host, says('{"decision":"accept","result":{"n":2}}'), { product: 'kind-rule' });
  expect(await run(host, 'kind-rule', { protocol: 'hook' })).toMatchObject({ decision: 'accept', result: { n: 2 } });
  await published(host, says('{"decision":"perhaps"}'), { product: 'undecided-rule' });
  expect(await refusal(run(host, 'undecided-rule', { protocol: 'hook' }))).toMatchObject({ code: 'trap', detail: 'hook_protocol' });
  const seen = await run(host, 'malformed', { context: { a: 1 } });
  expect(seen.result).toEqual({ a: 1 });
  expect(await refusal(run(host, 'malformed', { protocol: 'hook' }))).toMatchObject({ status: 422, code: 'trap', detail: 'hook_protocol' });
});

test('a result that the database cannot keep is a trap, and no execution is left running', async () => {
  for (const [product, said] of Object.entries({ half: '{"a":"\\ud800"}', nul: '["\\u0000"]' })) {
    await published(host, says(said), { product });
    expect(await refusal(run(host, product))).toMatchObject({
      status: 422,
      code: 'trap',
      detail: 'The result has a character U+0000 or half of a surrogate pair.',
    });
  }
  await published(host, says('"\\\\u0000 and \\ud83d\\ude00"'), { product: 'whole' });
  expect((await run(host, 'whole')).result).toBe('\\u0000 and 😀');
});

test('FUN-011 FUN-012 an execution has a key: a replay gets what was recorded, also while it runs, and nothing runs twice', async () => {
  await published(host, ASK, { product: 'once' });
  const by = host.by(ada) as unknown as Record<string, (input: object) => Promise<unknown>>;
  expect(
    await refusal(
      (by['executeProduct'] as (input: object) => Promise<unknown>)({
        params: { product_id: 'once' },
        body: { hook: 'hook', context: {} },
      }),
    ),
  ).toMatchObject({ status: 400 });
  let open = () => {};
  desk.wait = new Promise(resolve => (open = resolve));
  const first = run(host, 'once', { key: 'same', imports });
  await vi.waitFor(() => expect(desk.asked).toHaveLength(1));
  const during = run(host, 'once', { key: 'same', imports });
  open();
  const [one, two, three] = [await first, await during, await run(host, 'once', { key: 'same', imports })];
  expect([one.replayed, two.replayed, three.replayed]).toEqual([false, true, true]);
  expect([two.execution_id, three.execution_id, two.result]).toEqual([one.execution_id, one.execution_id, one.result]);
  expect(desk.asked).toHaveLength(1);
});

test('FUN-004 FUN-006 FUN-022 a call goes to the owning service’s internal path that the caller names, as this service, for this environment, under a key of its own', async () => {
  await published(host, ASK, { product: 'calls' });
  const done = await run(host, 'calls', { context: { who: 'x' }, imports, callback: { service: 'credit', headers: { 'X-Trace': 't1' } } });
  expect(done.result).toEqual({ score: 700, asked: { who: 'x' } });
  expect(desk.asked).toEqual([{ body: { who: 'x' }, key: `${done.execution_id}:1`, env: ENV, who: 'func', trace: 't1' }]);
  expect((await detail(done.execution_id)).calls).toEqual([
    expect.objectContaining({ name: 'ask', path: '/v1/internal/score', status: 200 }),
  ]);
  expect(await refusal(run(host, 'calls', { imports, callback: { service: 'sys' } }))).toMatchObject({
    status: 403,
    code: 'callback_not_allowed',
  });
  for (const path of [
    '/v1/score',
    '/v1/internal/../score',
    '/v1/internal//score',
    '/v1/internal/score?x=1',
    '/v1/internal/%2e%2e/x',
    'https://example.org/v1/internal/x',
  ])
    expect([path, (await refusal(run(host, 'calls', { imports: { ask: path } }))).code]).toEqual([path, 'import_invalid']);
  expect(
    (await refusal(run(host, 'calls', { imports, callback: { service: 'credit', headers: { 'x-platform-target-env-id': 'other' } } })))
      .code,
  ).toBe('import_invalid');
});

test('a failure that was recorded is replayed on another machine: the same input, to the byte, with the same end and fuel', async () => {
  // Pays for each byte that goes in, and then traps.
  const bytes = wat(
    '(func (export "hook") (param i32 i32) (result i64) (loop (local.set 1 (i32.sub (local.get 1) (i32.const 1))) (br_if 0 (local.get 1))) (unreachable))',
  );
  await published(host, bytes, { product: 'recorded' });
  const { extra } = await refusal(run(host, 'recorded', { protocol: 'hook', context: { name: 'Zürich' } }));
  const recorded = await detail(String(extra['execution_id']));
  expect(recorded.request).toMatchObject({ context: { name: 'Zürich' }, parameters: { limit: 5 }, protocol: 'hook' });
  const folder = mkdtempSync(join(tmpdir(), 'platform-test-'));
  const [wasm, json] = [join(folder, 'function.wasm'), join(folder, 'execution.json')];
  writeFileSync(wasm, bytes);
  writeFileSync(json, JSON.stringify(recorded));
  const lines: string[] = [];
  const operator = { print: (line: string) => void lines.push(line) } as Operator;
  expect(await func.run(['run', wasm, '--replay', json], operator)).toBe(0);
  rmSync(folder, { recursive: true });
  expect([lines.find(line => line.startsWith('fuel')), lines.at(-1)]).toEqual([
    `fuel      ${recorded.fuel_used} of 10000000`,
    `recorded  trap with ${recorded.fuel_used} fuel: the same`,
  ]);
});

test('FUN-015 a call that is not answered with success fails the execution, and says which', async () => {
  await published(host, ASK, { product: 'refused' });
  desk.refuses = true;
  expect(await refusal(run(host, 'refused', { imports }))).toMatchObject({
    status: 502,
    code: 'callback_failed',
    extra: { callback: { path: '/v1/internal/score', status: 409 }, retry: { attempt: 1 } },
  });
  desk.refuses = false;
  expect(await refusal(run(host, 'refused', { imports: {} }))).toMatchObject({ code: 'callback_failed' });
});

test('FUN-013 FUN-014 used-up fuel, a trap and time that is over are structured errors, and leave no result', async () => {
  await published(host, TRAP, { product: 'trap' });
  const spin = await uploaded(host, SPIN, { product: 'spin' });
  const trapped = await refusal(run(host, 'trap'));
  expect(trapped).toMatchObject({
    status: 422,
    code: 'trap',
    detail: 'divide by zero',
    extra: { execution_id: expect.any(String), retry: { attempt: 1, next_at: expect.any(String) } },
  });
  const by = host.by(ada);
  const spun = await refusal(
    by.executeModule({ params: { module_id: spin.module_id }, body: { hook: 'hook', context: {}, idempotency_key: 's' } }),
  );
  expect(spun).toMatchObject({ status: 422, code: 'fuel_exhausted' });
  await host.by(admin).putLimits({ body: { fuel: 10_000_000, memory_mib: 64, timeout_ms: 150 } });
  await published(host, ASK, { product: 'slow' });
  let open = () => {};
  desk.wait = new Promise(resolve => (open = resolve));
  const slow = await refusal(run(host, 'slow', { imports }));
  expect(slow).toMatchObject({ status: 504, code: 'execution_timeout' });
  open();
  await host.by(admin).putLimits({ body: { fuel: 10_000_000, memory_mib: 64, timeout_ms: 2_000 } });
  // Who changes what an environment's functions may use is asked afterwards (REG-004).
  const [short, long] = [150, 2_000].map(timeout_ms => ({ fuel: 10_000_000, memory_mib: 64, timeout_ms }));
  await expect
    .poll(() => host.audits.filter(({ action }) => action === 'limits.replaced'))
    .toMatchObject([
      { env_id: ENV, actor: { kind: 'user', id: admin.id }, resource: { type: 'env', id: ENV }, details: { from: 'default', to: short } },
      { details: { from: short, to: long } },
    ]);
  const sql = await host.sql();
  for (const { extra } of [trapped, spun, slow]) {
    const kept = await detail(String(extra['execution_id']));
    expect([kept.status, kept.result]).toEqual(['failed', null]);
    const told = await sql`select event_type from outbox where payload->>'execution_id' = ${kept.execution_id}`;
    expect([...told]).toEqual([{ event_type: 'platform:func:execution:failed' }]);
  }
  expect((await host.events('platform:func:execution:failed', 2)).map(({ payload }) => payload['code'])).toEqual(
    expect.arrayContaining(['trap', 'fuel_exhausted']),
  );
});

test('FUN-016 a failure is tried again after 1, 5 and 30 seconds and then lies with the dead, from where it is replayed', async () => {
  await published(host, ASK, { product: 'dead' });
  desk.refuses = true;
  const { extra } = await refusal(run(host, 'dead', { key: 'dead', imports }));
  const id = String(extra['execution_id']);
  for (const [index, pause] of [1, 5, 30].entries()) {
    const failed = await detail(id);
    expect([failed.attempts, Date.parse(String(failed.next_at)) - Date.parse(String(failed.finished_at))]).toEqual([
      index + 1,
      pause * 1_000,
    ]);
    await host.clock.advance(`${pause}s`);
    // The runner hears of a task a moment after it was written, and may look at the clock only then.
    await vi.waitFor(async () => {
      await host.clock.advance('100ms');
      expect((await detail(id)).attempts).toBe(index + 2);
    }, 20_000);
  }
  expect((await detail(id)).status).toBe('dead_lettered');
  // What other tests left failed dies beside it.
  await vi.waitFor(async () => {
    const told = (await host.events('platform:func:execution:dead_lettered')).map(({ payload }) => payload);
    expect(told).toContainEqual(expect.objectContaining({ execution_id: id, code: 'callback_failed' }));
  }, 10_000);
  expect(
    (await host.by(ada).listExecutions({ query: { status: 'dead_lettered' } })).items.map(({ execution_id }) => execution_id),
  ).toContain(id);
  // A recorded failure is what its key answers, until a try succeeds (G-FUNC-04).
  expect(await refusal(run(host, 'dead', { key: 'dead', imports }))).toMatchObject({
    code: 'callback_failed',
    extra: { execution_id: id },
  });
  desk.refuses = false;
  expect(await host.by(admin).replayExecution({ params: { execution_id: id } })).toMatchObject({
    status: 'completed',
    result: { score: 700 },
  });
  expect(await run(host, 'dead', { key: 'dead', imports })).toMatchObject({ execution_id: id, replayed: true });
  expect(await refusal(host.by(admin).replayExecution({ params: { execution_id: id } }))).toMatchObject({
    status: 409,
    code: 'execution_not_dead',
  });
});

test('a call has two seconds and 256 KiB to answer: one that takes more fails its execution, which has time left', async () => {
  const wide = wat('(func (export "hook") (param i32 i32) (result i64) (call $ask (local.get 0) (local.get 1)))', {
    memory: '(memory (export "memory") 16 64)',
    imports: '(import "platform" "ask" (func $ask (param i32 i32) (result i64)))',
  });
  await published(host, wide, { product: 'bounded' });
  await host.by(admin).putLimits({ body: { fuel: 10_000_000, memory_mib: 64, timeout_ms: 30_000 } });
  desk.wait = new Promise(() => undefined);
  const failed = { status: 502, code: 'callback_failed', extra: { callback: { path: '/v1/internal/score', status: 0 } } };
  expect(await refusal(run(host, 'bounded', { imports }))).toMatchObject(failed);
  desk.wait = undefined;
  // The answer has what was asked in it, and some more.
  const long = (bytes: number) => run(host, 'bounded', { imports, context: { text: 'x'.repeat(bytes) } });
  expect(await refusal(long(262_144 - 12))).toMatchObject({ code: 'callback_failed' });
  expect(await long(200_000)).toMatchObject({ status: 'completed' });
  await host.by(admin).putLimits({ body: { fuel: 10_000_000, memory_mib: 64, timeout_ms: 2_000 } });
});

test('FUN-003 fifty run at once in one environment, the next are refused, and another environment is not', async () => {
  await published(host, ASK, { product: 'many' });
  let open = () => {};
  desk.wait = new Promise(resolve => (open = resolve));
  const ended: string[] = [];
  const running = Array.from({ length: 60 }, () => refusal(run(host, 'many', { imports })).then(({ code }) => ended.push(code)));
  await vi.waitFor(() => expect(ended.length).toBeGreaterThanOrEqual(10), 10_000);
  const other = as.userIn('01900000-0000-7000-8000-0000000000e9', ...ada.scopes);
  expect((await refusal(run(host, 'many', { imports, by: other }))).code).toBe('no_active_version');
  open();
  await Promise.all(running);
  expect(ended.filter(code => code === 'too_many_executions')).toHaveLength(10);
  // What was refused left nothing behind: its key runs.
  expect(await run(host, 'many', { imports })).toMatchObject({ status: 'completed' });
  const figures = await host.by(ada).figures();
  expect(figures.products.find(({ product }) => product === 'many')?.executions).toBe(51);
});

test('the fifty are counted over all processes, and one that died gives its places back when their time is over', async () => {
  await published(host, ECHO, { product: 'fleet' });
  const [key, now] = [`func:executions:${ENV}`, Math.floor(Date.now() / 1_000)];
  const store = (command: string, ...args: (string | number)[]) => host.process.kv.call(command, key, ...args);
  await store('ZADD', ...Array.from({ length: 50 }, (_, index) => [now + 300, `running${index}`]).flat());
  expect(await refusal(run(host, 'fleet'))).toMatchObject({ status: 429, code: 'too_many_executions' });
  await store('ZADD', now - 300, 'running0');
  expect(await run(host, 'fleet')).toMatchObject({ status: 'completed' });
  await expect.poll(() => store('ZCARD')).toBe(49);
  await store('DEL');
});

test('FUN-035 what ran is told to the statistics, summed up by environment, product, hook and outcome, and what they do not take is told again, unless they never will', async () => {
  for (const product of ['never-taken', 'measured']) await published(host, ECHO, { product });
  // What is refused for good stands first, and holds nothing up.
  await run(host, 'never-taken');
  const done = [await run(host, 'measured'), await run(host, 'measured')];
  const told = () =>
    measured.filter(({ dimensions }) => dimensions?.['product'] === 'measured').map(({ metric, value }) => [metric, value]);
  statistics.refuses = true;
  await host.clock.advance('31s');
  statistics.refuses = false;
  const sum = (of: 'fuel_used' | 'duration_ms') => done.reduce((total, each) => total + each[of], 0);
  await vi.waitFor(async () => {
    await host.clock.advance('31s');
    expect(told()).toHaveLength(3);
  }, 10_000);
  expect(Object.fromEntries(told())).toEqual({
    'func.executions': 2,
    'func.fuel_used': sum('fuel_used'),
    'func.duration_ms': expect.closeTo(sum('duration_ms'), 3),
  });
  const dimensions = { env_id: ENV, domain: 'credit', product: 'measured', hook: 'hook', outcome: 'completed' };
  expect(measured.at(-1)).toMatchObject({ property_id: PROPERTY, dimensions: { env_id: ENV } });
  expect(measured.find(each => each.dimensions?.['product'] === 'measured')).toMatchObject({ dimensions });
});

test('FUN-001 a component is uploaded, validated and run as a module is, with the hook protocol and calls of its own', async () => {
  const made = await asks();
  const module = await uploaded(host, made, { product: 'component', hooks: ['on-apply'] });
  const id = { params: { module_id: module.module_id } };
  expect(await host.by(ada).validateModule({ ...id, body: {} })).toMatchObject({
    valid: true,
    exports: ['on-apply'],
    imports: ['ask', 'log'],
    diagnostics: [{ severity: 'info', code: 'calls_host' }],
  });
  await host.by(ada).activateModule(id);
  const body = { hook: 'on-apply', context: { who: 'x' }, idempotency_key: 'raw', imports };
  expect(await host.by(ada).executeProduct({ params: { product_id: 'component' }, body })).toMatchObject({
    result: { score: 700, asked: { who: 'x' } },
  });
  const hooked = await refusal(
    host.by(ada).executeProduct({ params: { product_id: 'component' }, body: { ...body, idempotency_key: 'hook', protocol: 'hook' } }),
  );
  expect(hooked).toMatchObject({ code: 'trap', detail: 'hook_protocol' });
  expect(await refusal(uploaded(host, made, { product: 'component', hooks: ['absent'] }))).toMatchObject({
    code: 'invalid_module',
    extra: { fault: 'export_missing' },
  });
});

test('FUN-029 a product of several domains wants the domain named', async () => {
  await published(host, ECHO, { product: 'twice' });
  const other = await host.by(ada).uploadModule({
    body: { domain: 'other', product: 'twice', source_language: 'c', wasm_base64: Buffer.from(ECHO).toString('base64'), hooks: ['hook'] },
  });
  await host.by(ada).validateModule({ params: { module_id: other.module_id }, body: {} });
  await host.by(ada).activateModule({ params: { module_id: other.module_id } });
  expect(await refusal(run(host, 'twice'))).toMatchObject({ status: 400, code: 'domain_required' });
  const named = await host.by(ada).executeProduct({
    params: { product_id: 'twice' },
    query: { domain: 'other' },
    body: { hook: 'hook', context: {}, idempotency_key: 'd' },
  });
  expect(named.module_id).toBe(other.module_id);
});
