/** The test kit: the real kernel around one plugin. */
export { BackendServer } from './servers/backend-server.ts';
export { cacheOn } from './cache-on.ts';
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
export { servicePool } from './service-pool.ts';
export { loseKeyValue, openTestStores, type TestStores } from './stores.ts';
export { type WireAnswer, wireRequest } from './calls/wire-request.ts';
