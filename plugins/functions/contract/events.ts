import { event, Id, Type } from '@platform/sdk/contract';

const OfModule = Type.Object({ module_id: Id, domain: Type.String(), product: Type.String(), wasm_hash: Type.String() });
const OfExecution = Type.Object({
  execution_id: Id,
  module_id: Id,
  domain: Type.String(),
  product: Type.String(),
  hook: Type.String(),
  code: Type.Optional(Type.String()),
  fuel_used: Type.Integer(),
  duration_ms: Type.Number(),
});

/** G-FUNC-08. */
export const events = {
  'platform:func:module:uploaded': event('A module was uploaded', OfModule),
  'platform:func:module:validated': event('A module passed its validation', OfModule),
  'platform:func:module:activated': event('A module became the active version of its product', OfModule),
  'platform:func:module:deprecated': event('A module is active no more', OfModule),
  'platform:func:module:deleted': event('A module is gone', OfModule),
  'platform:func:execution:completed': event('A function ran to its end', OfExecution),
  'platform:func:execution:failed': event('A function failed', OfExecution),
  'platform:func:execution:dead_lettered': event('A function failed for good', OfExecution),
};
