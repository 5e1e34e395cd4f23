import { del, get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import {
  Execute,
  Executed,
  Execution,
  ExecutionDetail,
  ExecutionStatus,
  Figures,
  Limits,
  Module,
  ModuleStatus,
  ProductId,
  Trial,
  Upload,
  Validation,
} from './schema.ts';

const ofModule = { module_id: Id };
const ofExecution = { execution_id: Id };

const reads = { gate: { any: ['func:modules:read', 'func:modules:admin'] }, env: 'own' } as const;
const writes = { gate: { any: ['func:modules:write', 'func:modules:admin'] }, env: 'own' } as const;
const executes = {
  gate: 'func:modules:execute',
  env: 'own',
  idempotency: 'own',
  body: Execute,
  returns: Executed,
  limit: 524_288,
} as const;
const failures = ['fuel_exhausted', 'memory_exceeded', 'trap', 'execution_timeout', 'callback_failed'] as const;
const refusals = [
  'func_disabled',
  'module_refused',
  'import_invalid',
  'callback_not_allowed',
  'context_too_large',
  'too_many_executions',
  'execution_running',
  'object_unreachable',
  'trap',
] as const;
const told = ['platform:func:execution:completed', 'platform:func:execution:failed'] as const;

/** G-FUNC-02, G-FUNC-03, G-FUNC-06. */
export const routes = {
  uploadModule: post('/v1/modules', {
    summary: 'Upload a module',
    ...writes,
    body: Upload,
    returns: Module,
    status: 201,
    limit: 12_582_912,
    problems: ['func_disabled', 'invalid_module', 'wasm_hash_mismatch', 'module_too_large', 'object_unreachable', 'owner_required'],
    emits: ['platform:func:module:uploaded'],
  }),
  listModules: get('/v1/modules', {
    summary: 'Modules of an environment, newest first',
    ...reads,
    query: {
      domain: Type.Optional(Type.String({ title: 'Domain', maxLength: 64 })),
      product: Type.Optional(Type.String({ title: 'Product', maxLength: 64 })),
      status: Type.Optional(ModuleStatus),
      ...PageQuery,
    },
    returns: Page(Module),
  }),
  getModule: get('/v1/modules/{module_id}', {
    params: ofModule,
    summary: 'One module',
    ...reads,
    returns: Module,
    problems: ['module_not_found'],
  }),
  validateModule: post('/v1/modules/{module_id}/validate', {
    params: ofModule,
    summary: 'Compile a module and try it, without publishing it',
    ...writes,
    body: Trial,
    returns: Validation,
    problems: ['func_disabled', 'module_not_found', 'object_unreachable', 'owner_required', 'too_many_executions'],
    emits: ['platform:func:module:validated'],
  }),
  activateModule: post('/v1/modules/{module_id}/activate', {
    params: ofModule,
    summary: 'Make it the active version of its product',
    ...writes,
    returns: Module,
    problems: ['func_disabled', 'module_not_found', 'module_not_validated', 'owner_required'],
    emits: ['platform:func:module:activated', 'platform:func:module:deprecated'],
  }),
  deprecateModule: post('/v1/modules/{module_id}/deprecate', {
    params: ofModule,
    summary: 'Take it out of force',
    ...writes,
    returns: Module,
    problems: ['func_disabled', 'module_not_found', 'module_not_active', 'owner_required'],
    emits: ['platform:func:module:deprecated'],
  }),
  deleteModule: del('/v1/modules/{module_id}', {
    params: ofModule,
    summary: 'Delete it with its bytes',
    ...writes,
    problems: ['func_disabled', 'module_not_found', 'module_active', 'owner_required'],
    emits: ['platform:func:module:deleted'],
  }),
  executeModule: post('/v1/modules/{module_id}/execute', {
    params: ofModule,
    summary: 'Execute this version',
    ...executes,
    problems: [...refusals, ...failures.slice(0, 2), 'execution_timeout', 'callback_failed', 'module_not_found', 'module_draft'],
    emits: told,
  }),
  executeProduct: post('/v1/modules/product/{product_id}/execute', {
    params: { product_id: ProductId },
    summary: 'Execute the active version of a product',
    ...executes,
    query: { domain: Type.Optional(Type.String({ maxLength: 64 })) },
    problems: [...refusals, ...failures.slice(0, 2), 'execution_timeout', 'callback_failed', 'no_active_version', 'domain_required'],
    emits: told,
  }),
  listExecutions: get('/v1/executions', {
    summary: 'Executions, newest first',
    ...reads,
    query: {
      status: Type.Optional(ExecutionStatus),
      product: Type.Optional(Type.String({ title: 'Product', maxLength: 64 })),
      hook: Type.Optional(Type.String({ title: 'Hook', maxLength: 64 })),
      ...PageQuery,
    },
    returns: Page(Execution),
  }),
  listDeadLetters: get('/v1/dead-letters', {
    summary: 'Executions that failed for good',
    ...reads,
    query: PageQuery,
    returns: Page(Execution),
    hidden: true,
  }),
  getExecution: get('/v1/executions/{execution_id}', {
    params: ofExecution,
    summary: 'One execution with what went in and out',
    ...reads,
    returns: ExecutionDetail,
    problems: ['execution_not_found'],
  }),
  replayExecution: post('/v1/executions/{execution_id}/replay', {
    params: ofExecution,
    summary: 'Try a dead letter anew',
    gate: 'func:modules:admin',
    env: 'own',
    returns: ExecutionDetail,
    problems: ['func_disabled', 'execution_not_found', 'execution_not_dead'],
    emits: [...told, 'platform:func:execution:dead_lettered'],
  }),
  figures: get('/v1/figures', { summary: 'Executions of the last day, by product', ...reads, returns: Figures }),
  productFigures: get('/v1/figures/products', {
    summary: 'The same, by product alone',
    ...reads,
    returns: Type.Object({ items: Figures.properties.products }),
    hidden: true,
  }),
  getLimits: get('/v1/limits', { summary: 'What one execution may use', ...reads, returns: Limits }),
  putLimits: put('/v1/limits', {
    summary: 'Say what one execution may use',
    gate: 'func:modules:admin',
    env: 'own',
    body: Limits,
    returns: Limits,
    problems: ['func_disabled'],
  }),
} as const;
