import { Id, nullable, type Static, Type } from '@platform/sdk/contract';

const Name = (title: string, maxLength = 64) => Type.String({ title, pattern: '^[a-z][a-z0-9_.-]*$', maxLength });
export const ProductId = Name('Product');
/** An export of a module; the runtime's own begin with a dollar sign. */
const HookName = Type.String({ title: 'Hook', pattern: '^[A-Za-z_][A-Za-z0-9_.-]*$', maxLength: 64 });
const Open = Type.Object({}, { additionalProperties: true });

export const Language = Type.Union(
  [
    Type.Literal('rust'),
    Type.Literal('assemblyscript'),
    Type.Literal('tinygo'),
    Type.Literal('c'),
    Type.Literal('javascript'),
    Type.Literal('other'),
  ],
  {
    title: 'Language',
  },
);
export const ModuleStatus = Type.Union([Type.Literal('draft'), Type.Literal('active'), Type.Literal('deprecated')], { title: 'Status' });
export const ExecutionStatus = Type.Union(
  [Type.Literal('running'), Type.Literal('completed'), Type.Literal('failed'), Type.Literal('dead_lettered')],
  { title: 'Status' },
);

/** G-FUNC-01. */
export const Module = Type.Object({
  module_id: Id,
  env_id: Id,
  domain: Type.String(),
  product: Type.String(),
  version_label: Type.String(),
  status: ModuleStatus,
  validated_at: nullable(Type.String()),
  storage_key: Type.String(),
  source_language: Type.String(),
  hooks: Type.Array(Type.String()),
  parameters: Open,
  wasm_hash: Type.String(),
  size_bytes: Type.Integer(),
  owner: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
  active: Type.Boolean(),
});
export type Module = Static<typeof Module>;

export const Upload = Type.Object({
  domain: Name('Domain'),
  product: Name('Product'),
  version_label: Type.Optional(Type.String({ title: 'Version', minLength: 1, maxLength: 64 })),
  source_language: Language,
  wasm_base64: Type.String({ title: 'Module', widget: 'file', minLength: 8, maxLength: 11_300_000 }),
  hooks: Type.Array(HookName, { title: 'Hooks', minItems: 1, maxItems: 32 }),
  parameters: Type.Optional(Open),
  wasm_hash: Type.Optional(Type.String({ title: 'SHA-256', pattern: '^sha256:[0-9a-f]{64}$' })),
});
export type Upload = Static<typeof Upload>;

export const Trial = Type.Object({ hook: Type.Optional(HookName), context: Type.Optional(Open) });
export const Validation = Type.Object({
  valid: Type.Boolean(),
  diagnostics: Type.Array(
    Type.Object({
      severity: Type.Union([Type.Literal('error'), Type.Literal('warning'), Type.Literal('info')]),
      code: Type.String(),
      message: Type.String(),
    }),
  ),
  exports: Type.Array(Type.String()),
  imports: Type.Array(Type.String()),
  fuel_used: Type.Integer(),
  memory_bytes: Type.Integer(),
});
export type Validation = Static<typeof Validation>;

/** G-FUNC-04. `imports` says which path of the owning service each import of the guest is answered by. */
export const Execute = Type.Object({
  hook: HookName,
  context: Open,
  idempotency_key: Type.String({ minLength: 1, maxLength: 200 }),
  imports: Type.Optional(Type.Record(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,63}$' }), Type.String({ maxLength: 300 }))),
  callback: Type.Optional(
    Type.Object({
      service: Type.String({ maxLength: 64 }),
      headers: Type.Optional(Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 1_024 }))),
    }),
  ),
  parameters: Type.Optional(Open),
  protocol: Type.Optional(Type.Union([Type.Literal('raw'), Type.Literal('hook')])),
});
export type Execute = Static<typeof Execute>;

const Directive = Type.Object({ type: Type.String() }, { additionalProperties: true });
export const Executed = Type.Object({
  execution_id: Id,
  module_id: Id,
  hook: Type.String(),
  status: Type.Literal('completed'),
  result: Type.Unknown(),
  decision: Type.Optional(Type.Union([Type.Literal('accept'), Type.Literal('reject')])),
  reject_reason: Type.Optional(Type.String()),
  directives: Type.Optional(Type.Array(Directive)),
  fuel_used: Type.Integer(),
  memory_bytes: Type.Integer(),
  duration_ms: Type.Number(),
  replayed: Type.Boolean(),
});
export type Executed = Static<typeof Executed>;

/** What a hook answers (G-FUNC-05). */
export const HookResponse = Type.Object(
  {
    decision: Type.Union([Type.Literal('accept'), Type.Literal('reject')]),
    reject_reason: Type.Optional(Type.String({ maxLength: 2_000 })),
    directives: Type.Optional(Type.Array(Directive, { maxItems: 100 })),
    result: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: true },
);

export const Execution = Type.Object({
  execution_id: Id,
  module_id: Id,
  env_id: Id,
  domain: Type.String(),
  product: Type.String(),
  hook: Type.String(),
  status: ExecutionStatus,
  code: nullable(Type.String()),
  detail: nullable(Type.String()),
  decision: nullable(Type.String()),
  attempts: Type.Integer(),
  next_at: nullable(Type.String()),
  fuel_used: Type.Integer(),
  memory_bytes: Type.Integer(),
  duration_ms: Type.Number(),
  idempotency_key: Type.String(),
  created_at: Type.String(),
  finished_at: nullable(Type.String()),
});
export const ExecutionDetail = Type.Object({
  ...Execution.properties,
  request: Open,
  result: Type.Unknown(),
  logs: Type.Array(Type.String()),
  calls: Type.Array(Open),
});
export type Execution = Static<typeof Execution>;
export type ExecutionDetail = Static<typeof ExecutionDetail>;

export const Limits = Type.Object({
  fuel: Type.Integer({ title: 'Instructions', minimum: 10_000, maximum: 100_000_000 }),
  memory_mib: Type.Integer({ title: 'Memory in MiB', minimum: 1, maximum: 256 }),
  timeout_ms: Type.Integer({ title: 'Milliseconds, calls included', minimum: 50, maximum: 30_000 }),
});
export type Limits = Static<typeof Limits>;

export const Figures = Type.Object({
  executions: Type.Integer(),
  failed: Type.Integer(),
  dead_letters: Type.Integer(),
  modules: Type.Integer(),
  products: Type.Array(
    Type.Object({
      product: Type.String(),
      executions: Type.Integer(),
      failed: Type.Integer(),
      fuel_p50: Type.Number(),
      fuel_p95: Type.Number(),
      duration_p50_ms: Type.Number(),
      duration_p95_ms: Type.Number(),
    }),
  ),
});
export type Figures = Static<typeof Figures>;
