/** The test kit: the real kernel around one plugin. */
export { BackendServer } from './servers/backend-server.ts';
export { cacheOn } from './context/cache-on.ts';
export { platformNames } from './context/platform-names.ts';
export { boot, type BootedHost } from './boot.ts';
export type { BootOptions, Stubs } from './boot-options.ts';
export type { DoorRequest } from './calls/door-request.ts';
export type { DirectInput } from './calls/direct-call.ts';
export { IngressClient, type IngressRequest } from './calls/ingress-client.ts';
export type { LogLine } from './log-lines.ts';
export type { SeenEvent } from './test-bus.ts';
export { describeConformance } from './conformance.ts';
export { type ContractCoverage, Coverage } from './coverage.ts';
export { NameServer } from './servers/name-server.ts';
export { as, type Persona, TokenMint } from './persona.ts';
export { servicePool } from './stores/service-pool.ts';
export { loseKeyValue, openTestStores, type TestStores } from './stores/stores.ts';
export { type WireAnswer, wireRequest } from './calls/wire-request.ts';

// Parts of the kernel that tests of plugins use, from one place: the import law keeps them from going round it.
export { TimedCache } from '@platform/kernel/base/cache';
export { ManualClock, systemClock } from '@platform/kernel/base/clock';
export { DisposalStack } from '@platform/kernel/base/disposal-stack';
export { newId } from '@platform/kernel/base/ids';
export { kernelProblem } from '@platform/kernel/base/kernel-problem';
export { type Manifest, manifestOf } from '@platform/kernel/base/manifest';
export { BadCsr, readCsr, thumbprintOf } from '@platform/kernel/identity/certificates/authority';
export { openAuthority } from '@platform/kernel/identity/certificates/trust-anchors';
export { SealedBox } from '@platform/kernel/secrets/sealed-box';
export { eventually } from '@platform/kernel/storage/fixtures/eventually';
export { freePort } from '@platform/kernel/storage/free-port';
export { connectKeyValue, type KeyValue } from '@platform/kernel/storage/key-value';
export { ProcessLimit } from '@platform/kernel/storage/limits/process-limit';
export type { PostgresPool } from '@platform/kernel/storage/postgres/postgres-pool';
export { readRecord } from '@platform/kernel/storage/process-record';
