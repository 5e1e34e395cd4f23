/** The test kit: the real kernel around one plugin. */
export { BackendServer } from './backend-server.ts';
export { boot, type BootedHost, type BootOptions, type DoorRequest, type Stubs } from './boot.ts';
export type { DirectInput } from './direct-call.ts';
export { IngressClient, type IngressRequest } from './ingress-client.ts';
export type { LogLine } from './log-lines.ts';
export type { SeenEvent } from './test-bus.ts';
export { describeConformance } from './conformance.ts';
export { Coverage } from './coverage.ts';
export { NameServer } from './name-server.ts';
export { as, type Persona, TokenMint } from './persona.ts';
export { loseKeyValue, openTestStores, type TestStores } from './stores.ts';
export { type WireAnswer, wireRequest } from './wire-request.ts';
