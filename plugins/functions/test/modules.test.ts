import { createHash } from 'node:crypto';
import { as, servicePool } from '@platform/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { functions } from '../contract/index.ts';
import { desk } from './fixtures/credit.ts';
import { ASK, ECHO, GROW, SPIN, TRAP, wat } from './fixtures/guests.ts';
import { ada, admin, bob, disabled, ENV, type Host, published, refusal, run, storedKeys, uploaded, world } from './fixtures/world.ts';

let host: Host;
beforeAll(async () => {
  host = await world();
});
afterAll(() => host?.[Symbol.asyncDispose]());

const ECHO_TWO = `(func (export "hook") (param i32 i32) (result i64) (i64.const ${(64n << 32n) + 1n}))`;
const hash = `sha256:${createHash('sha256').update(ECHO).digest('hex')}`;
const stored = async () => (await (await host.sql())<{ n: number }[]>`select count(*)::int as n from modules where env_id = ${ENV}`)[0]?.n;

test('FUN-002 FUN-021 FUN-033 FUN-037 an upload is checked against its hash, stored as an object of this service and written down', async () => {
  expect(await refusal(uploaded(host, ECHO, { wasm_hash: `sha256:${'0'.repeat(64)}` }))).toMatchObject({
    status: 400,
    code: 'wasm_hash_mismatch',
  });
  expect(await stored()).toBe(0);
  const module = await uploaded(host, ECHO, { product: 'first', wasm_hash: hash });
  expect(module).toMatchObject({
    env_id: ENV,
    domain: 'credit',
    product: 'first',
    version_label: expect.stringMatching(/./),
    source_language: 'other',
    status: 'draft',
    validated_at: null,
    storage_key: `func/${module.module_id}.wasm`,
    hooks: ['hook'],
    parameters: { limit: 5 },
  });
  expect(module).toMatchObject({ wasm_hash: hash, size_bytes: ECHO.length, owner: ada.id, active: false });
  expect(await storedKeys(host)).toContain(module.storage_key);
  expect((await host.events('platform:func:module:uploaded')).at(-1)).toMatchObject({
    env_id: ENV,
    payload: { module_id: module.module_id, domain: 'credit', product: 'first', wasm_hash: hash },
  });
});

test('FUN-007 the object stands under the id of its module before the row does', async () => {
  const sql = await host.sql();
  const before = new Set(await storedKeys(host));
  const added = async () => (await storedKeys(host)).filter(key => !before.has(key));
  await sql`create table gate (opened boolean)`;
  // Until the gate is open rows can be read, and none be written.
  const closed = (async () =>
    await sql`do $$ begin
    lock table modules in share row exclusive mode;
    for each in 1..2000 loop exit when exists (select from gate); perform pg_sleep(0.01); end loop;
  end $$`)();
  const locked = () =>
    sql<object[]>`select 1 from pg_locks where relation = 'modules'::regclass and mode = 'ShareRowExclusiveLock' and granted`;
  await expect.poll(locked, { timeout: 20_000 }).toHaveLength(1);
  const upload = uploaded(host, ECHO, { product: 'in-order' });
  await expect.poll(added, { timeout: 20_000 }).toHaveLength(1);
  expect(await sql`select 1 from modules where product = 'in-order'`).toEqual([]);
  await sql`insert into gate values (true)`;
  await closed;
  expect([(await upload).storage_key]).toEqual(await added());
  await sql`drop table gate`;
});

test('FUN-038 the same content again is the version that is there', async () => {
  const [one, two] = [await uploaded(host, ECHO, { product: 'again' }), await uploaded(host, ECHO, { product: 'again' })];
  expect(two).toEqual(one);
  const raced = await Promise.all(Array.from({ length: 4 }, () => uploaded(host, ECHO, { product: 'raced' })));
  expect(new Set(raced.map(({ module_id }) => module_id)).size).toBe(1);
  expect((await uploaded(host, ECHO, { product: 'other' })).module_id).not.toBe(one.module_id);
});

test('FUN-008 a row that cannot be written leaves no module and takes its object away', async () => {
  const sql = await host.sql();
  const before = await storedKeys(host);
  await sql`alter table modules add constraint nobody check (product <> 'doomed') not valid`;
  await expect(uploaded(host, ECHO, { product: 'doomed' })).rejects.toThrow();
  await sql`alter table modules drop constraint nobody`;
  expect((await host.by(ada).listModules({ query: { product: 'doomed' } })).items).toEqual([]);
  expect(await storedKeys(host)).toEqual(before);
});

test('FUN-005 what is no module, wants more than it is offered or would hurt the compiler is refused with the reason', async () => {
  const faults: [string, Uint8Array, string[]?][] = [
    ['not_wasm', Buffer.from('nothing at all')],
    ['export_missing', ECHO, ['absent']],
    [
      'import_refused',
      wat('(func (export "hook") (param i32 i32) (result i64) (i64.const 0))', {
        imports: '(import "wasi_snapshot_preview1" "fd_write" (func (param i32)))',
      }),
    ],
    [
      'feature_refused',
      wat('(func (export "hook") (param i32 i32) (result i64) (i64.const 0))', { memory: '(memory (export "memory") 1 2 shared)' }),
    ],
    ['too_complex', wat(`(func (export "hook") (param i32 i32) (result i64) (local ${'i32 '.repeat(3_000)}) (i64.const 0))`)],
    ['too_large', wat('(func (export "hook") (param i32 i32) (result i64) (i64.const 0))', { memory: '(memory (export "memory") 5000)' })],
    ['reserved_export', wat('(func (export "hook") (export "$rt.fuel") (param i32 i32) (result i64) (i64.const 0))')],
    ['malformed', ECHO.slice(0, ECHO.length - 3)],
  ];
  for (const [fault, bytes, hooks] of faults) {
    const refused = await refusal(uploaded(host, bytes, { product: 'bad', ...(hooks ? { hooks } : {}) }));
    expect([fault, refused.code, refused.extra['fault']]).toEqual([fault, 'invalid_module', fault]);
  }
});

test('what is too large is refused, and while object storage fails nothing is stored', async () => {
  expect(await refusal(uploaded(host, new Uint8Array(8_388_609)))).toMatchObject({ status: 413, code: 'module_too_large' });
  const before = await stored();
  await using storage = await servicePool(host.stores, 'storage');
  await storage.raw.unsafe('alter table objects rename to objects_away');
  try {
    expect(await refusal(uploaded(host, ECHO, { product: 'unreachable' }))).toMatchObject({ status: 502, code: 'object_unreachable' });
  } finally {
    await storage.raw.unsafe('alter table objects_away rename to objects');
  }
  expect(await stored()).toBe(before);
});

test('FUN-009 FUN-010 FUN-024 validation compiles and tries a module and publishes nothing; activation alone does, after it passed', async () => {
  const draft = await uploaded(host, ECHO, { product: 'life' });
  const by = host.by(ada);
  const id = { params: { module_id: draft.module_id } };
  expect(await refusal(by.activateModule(id))).toMatchObject({ status: 409, code: 'module_not_validated' });
  const validation = await by.validateModule({ ...id, body: {} });
  expect(validation).toMatchObject({
    valid: true,
    diagnostics: [],
    exports: expect.arrayContaining(['memory', 'alloc', 'hook']),
    imports: [],
  });
  expect(validation.fuel_used).toBeGreaterThan(0);
  expect(await by.getModule(id)).toMatchObject({ status: 'draft', active: false });
  expect(await refusal(run(host, 'life'))).toMatchObject({ status: 404, code: 'no_active_version' });
  expect(await by.activateModule(id)).toMatchObject({ status: 'active', active: true });
  expect((await host.events('platform:func:module:activated')).at(-1)?.payload['module_id']).toBe(draft.module_id);
});

test('FUN-009 a module that spins or takes all memory fails its validation with 200 and a diagnosis; one that only wants another input does not', async () => {
  const tried = async (bytes: Uint8Array) =>
    host.by(ada).validateModule({ params: { module_id: (await uploaded(host, bytes)).module_id }, body: {} });
  expect(await tried(SPIN)).toMatchObject({ valid: false, diagnostics: [{ severity: 'error', code: 'fuel_exhausted' }] });
  expect(await tried(GROW)).toMatchObject({ valid: false, diagnostics: [{ severity: 'error', code: 'memory_exceeded' }] });
  expect(await tried(TRAP)).toMatchObject({ valid: true, diagnostics: [{ severity: 'warning', code: 'trap' }] });
});

test('FUN-025 FUN-026 FUN-027 FUN-028 FUN-029 FUN-034 FUN-039 a product has one active version, which it runs; it is deprecated before it is deleted, and each change is told', async () => {
  const one = await published(host, ECHO, { product: 'versions' });
  const two = await published(host, wat(`(data (i32.const 64) "2") ${ECHO_TWO}`), { product: 'versions' });
  const by = host.by(ada);
  const statuses = async () =>
    (await by.listModules({ query: { product: 'versions' } })).items.map(({ module_id, status, active }) => [
      module_id === one.module_id ? 'one' : 'two',
      status,
      active,
    ]);
  expect(await statuses()).toEqual([
    ['two', 'active', true],
    ['one', 'deprecated', false],
  ]);
  expect(await run(host, 'versions')).toMatchObject({ module_id: two.module_id, result: 2 });
  expect(await refusal(by.deleteModule({ params: { module_id: two.module_id } }))).toMatchObject({ status: 409, code: 'module_active' });
  await by.deprecateModule({ params: { module_id: two.module_id } });
  expect(await refusal(by.deprecateModule({ params: { module_id: two.module_id } }))).toMatchObject({
    status: 409,
    code: 'module_not_active',
  });
  expect(await refusal(run(host, 'versions'))).toMatchObject({ status: 404, code: 'no_active_version' });
  await by.deleteModule({ params: { module_id: two.module_id } });
  await by.deleteModule({ params: { module_id: (await uploaded(host, ECHO, { product: 'draft' })).module_id } });
  expect(await statuses()).toEqual([['one', 'deprecated', false]]);
  // A deprecated version is still there for whoever pinned it (G-FUNC-03).
  expect(
    await by.executeModule({ params: { module_id: one.module_id }, body: { hook: 'hook', context: {}, idempotency_key: 'pinned' } }),
  ).toMatchObject({ module_id: one.module_id, status: 'completed', result: {} });
  const sql = await host.sql();
  const told = await sql<
    { event_type: string }[]
  >`select event_type from outbox where payload->>'module_id' = ${two.module_id} order by id`;
  expect(told.map(({ event_type }) => event_type.split(':').at(-1)).filter(name => name !== 'completed')).toEqual([
    'uploaded',
    'validated',
    'activated',
    'deprecated',
    'deleted',
  ]);
});

test('FUN-020 FUN-032 policy decides: the owner and administrators change a module, others do not, and nobody without the scope', async () => {
  const module = await uploaded(host, ECHO, { product: 'owned' });
  const id = { params: { module_id: module.module_id } };
  await host.by(ada).validateModule({ ...id, body: {} });
  expect(await refusal(host.by(bob).activateModule(id))).toMatchObject({ status: 403, code: 'owner_required' });
  expect(await refusal(host.by(bob).deleteModule(id))).toMatchObject({ status: 403, code: 'owner_required' });
  expect(await refusal(uploaded(host, ECHO, { by: as.userIn(ENV, 'func:modules:read') }))).toMatchObject({
    status: 403,
    code: 'policy_denied',
  });
  expect(await refusal(run(host, 'owned', { by: as.userIn(ENV, 'func:modules:read') }))).toMatchObject({
    status: 403,
    code: 'policy_denied',
  });
  expect(await refusal(host.by(bob).executeModule({ ...id, body: { hook: 'hook', context: {}, idempotency_key: 'x' } }))).toMatchObject({
    status: 409,
    code: 'module_draft',
  });
  expect(await host.by(admin).activateModule(id)).toMatchObject({ active: true });
});

test('FUN-020 a token that was given less than its administrator may changes no module of others', async () => {
  const module = await uploaded(host, ECHO, { product: 'narrow' });
  await host.by(ada).validateModule({ params: { module_id: module.module_id }, body: {} });
  const staff = as.delegated(ENV, 'func:modules:read', 'func:modules:write', 'func:modules:admin');
  host.by(staff);
  const activate = (token: string) => host.fetch(`/v1/modules/${module.module_id}/activate`, { method: 'POST', token });
  expect(await activate(host.mint.token(staff, 'func', { scope: 'platform:func:modules:write' }))).toMatchObject({
    status: 403,
    json: { code: 'owner_required' },
  });
  expect(await activate(host.mint.token(staff, 'func'))).toMatchObject({ status: 200, json: { active: true } });
});

test('FUN-017 FUN-018 only a row that says no turns functions off: then every change is 409 and reads stay', async () => {
  const off = '01900000-0000-7000-8000-0000000000e2';
  const eve = as.userIn(off, ...ada.scopes, 'func:modules:admin');
  const module = await published(host, ECHO, { product: 'off', by: eve });
  disabled.add(off);
  await host.clock.advance('31s');
  const by = host.by(eve);
  const id = { params: { module_id: module.module_id } };
  const attempts = [
    () => uploaded(host, ECHO, { by: eve }),
    () => by.validateModule({ ...id, body: {} }),
    () => by.activateModule(id),
    () => by.deprecateModule(id),
    () => by.deleteModule(id),
    () => run(host, 'off', { by: eve }),
    () => by.executeModule({ ...id, body: { hook: 'hook', context: {}, idempotency_key: 'off' } }),
    () => by.replayExecution({ params: { execution_id: module.module_id } }),
    () => by.putLimits({ body: { fuel: 10_000_000, memory_mib: 64, timeout_ms: 2_000 } }),
  ];
  // Whatever changes something is among them; another service that is off turns nothing off.
  expect(attempts).toHaveLength(Object.values(functions.routes).filter(({ method }) => method !== 'GET').length);
  for (const [index, attempt] of attempts.entries())
    expect([index, await refusal(attempt())]).toMatchObject([index, { status: 409, code: 'func_disabled' }]);
  expect((await by.listModules({})).items).toHaveLength(1);
});

test('FUN-030 FUN-031 FUN-036 the API lists by its filters, all paths are under /v1, and the pages are served', async () => {
  const { json } = await host.fetch('/openapi.json');
  expect(
    Object.keys(json['paths'] as object).every(path => path.startsWith('/v1/') || path === '/subscribe' || path.startsWith('/openapi')),
  ).toBe(true);
  expect(Object.keys(json['paths'] as object)).toEqual(
    expect.arrayContaining(['/v1/modules', ...['', '/validate', '/activate', '/deprecate'].map(of => `/v1/modules/{module_id}${of}`)]),
  );
  expect((await host.by(ada).listModules({ query: { domain: 'credit', status: 'active', limit: 1 } })).items).toHaveLength(1);
  const nobody = host.by(as.userIn(ENV));
  const id = { params: { module_id: (await uploaded(host, ECHO, { product: 'api' })).module_id } };
  for (const attempt of [
    () => uploaded(host, ECHO, { by: as.userIn(ENV) }),
    () => nobody.validateModule({ ...id, body: {} }),
    () => nobody.activateModule(id),
    () => nobody.deprecateModule(id),
    () => nobody.deleteModule(id),
    () => nobody.listModules({}),
  ])
    expect(await refusal(attempt())).toMatchObject({ status: 403, code: 'policy_denied' });
  for (const page of ['overview', 'modules', 'executions', 'dead-letters', 'limits']) {
    const served = await host.fetch(`/v1/admin/ui/${page}?target_env_id=${ENV}`, { persona: ada });
    expect([page, served.status]).toEqual([page, 200]);
  }
  expect(await refusal(host.by(as.machine('probe', 'func:modules:read')).listModules({}))).toMatchObject({
    status: 400,
    code: 'target_env_required',
  });
});

test('FUN-012 a replay of an execution that does not end in time is told to ask again under its key', async () => {
  await published(host, ECHO, { product: 'elsewhere' });
  const { execution_id } = await run(host, 'elsewhere', { key: 'elsewhere' });
  // Another process has it under way, as this one sees it.
  const sql = await host.sql();
  await sql`update executions set status = 'running', finished_at = null where execution_id = ${execution_id}`;
  const replay = refusal(run(host, 'elsewhere', { key: 'elsewhere' }));
  const ended = replay.then(() => true);
  while (!(await Promise.race([ended, host.clock.advance('5s').then(() => false)])));
  expect(await replay).toMatchObject({ status: 409, code: 'execution_running' });
  await sql`update executions set status = 'completed' where execution_id = ${execution_id}`;
});

test('FUN-019 what a hook is asked in the hook protocol says who asks what, of which function, in which environment', async () => {
  // This guest hands what it was given to its own service, which tells.
  const { module_id } = await published(host, ASK, { product: 'protocol' });
  desk.asked = [];
  const imports = { ask: '/v1/internal/score' };
  const { extra } = await refusal(run(host, 'protocol', { protocol: 'hook', context: { who: 'x' }, imports }));
  expect(desk.asked.map(({ body }) => body)).toEqual([
    {
      ...{ protocol: 'hook/1', execution_id: extra['execution_id'], hook: 'hook', env_id: ENV, domain: 'credit', product: 'protocol' },
      ...{ module_id, context: { who: 'x' }, parameters: { limit: 5 } },
    },
  ]);
});

test('FUN-012 what was recorded is the answer for a day; then its key runs anew', async () => {
  await published(host, ECHO, { product: 'remembered' });
  const sql = await host.sql();
  const ran = async () => {
    const { execution_id, replayed } = await run(host, 'remembered', { key: 'remembered' });
    return { execution_id, replayed };
  };
  const { execution_id } = await ran();
  const age = (hours: number) =>
    sql`update executions set created_at = ${new Date(host.clock.now().getTime() - hours * 3_600_000)} where execution_id = ${execution_id}`;
  await age(23.9);
  expect(await ran()).toEqual({ execution_id, replayed: true });
  await age(24.1);
  expect(await ran()).toEqual({ execution_id: expect.not.stringMatching(execution_id), replayed: false });
});

test('FUN-013 a function that takes all memory, or is given more than it may, ends with a structured error', async () => {
  const { module_id } = await uploaded(host, GROW, { product: 'grow' });
  const execute = (context: object) =>
    refusal(host.by(ada).executeModule({ params: { module_id }, body: { hook: 'hook', context, idempotency_key: 'g' } }));
  expect(await execute({ text: 'x'.repeat(262_144) })).toMatchObject({ status: 413, code: 'context_too_large' });
  expect(await execute({})).toMatchObject({ status: 422, code: 'memory_exceeded' });
});
