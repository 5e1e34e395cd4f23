export type { Operator, PlatformCommand } from './src/command.ts';
export { commandOf, readArguments, verbs } from './src/command.ts';
export * from './contract.ts';
export { definePlugin } from './src/plugin.ts';
export type { AnyPlugin, Plugin, PluginBehaviour } from './src/plugin.ts';
export type { AtEnd } from './src/at-end.ts';
export type {
  Backends,
  Caller,
  Client,
  Connection,
  Context,
  KeyValue,
  Logger,
  MachineCaller,
  NodeExchange,
  RawExchange,
  Request,
  RequestOf,
  Sealed,
  SealedBox,
  UserCaller,
} from './src/context.ts';
export type { AuditEntry, EmitEntry, Tx } from './src/tx.ts';
export type { EnqueueOptions, TaskRun } from './src/task.ts';
export type { OrderKind, PagePart, PageSpec } from './src/paging.ts';
export type { Sql } from './src/sql.ts';
export type { Cache, CacheOptions } from './src/cache.ts';
export type { Possession, TokenChecks, TokenClaims, VerificationKey } from './src/token-claims.ts';
export type { ExplainedDecision, PolicyInquiry } from './src/policy-inquiry.ts';
export { StoreAbsent } from './src/process-host.ts';
export type {
  ControlAnswer,
  ControlRequest,
  HealthAnswer,
  InstanceRegistry,
  InstanceRow,
  KnownProcess,
  MachineUsage,
  ProcessHost,
  ProcessId,
  ProcessNews,
  Runnable,
  SpawnRequest,
} from './src/process-host.ts';
export type { IssuedCertificate, LeafOrder, SigningAuthority } from './src/signing-authority.ts';
export { admits } from './src/accept.ts';
export { boundedBytes, callBack } from './src/call-back.ts';
export type { CallBack, CalledBack } from './src/call-back.ts';
export type { CronTimes } from './src/cron-times.ts';
export { ERROR_FORMS, errorBody } from './src/error-form.ts';
export { FairShare, type FairShareOptions } from './src/fair-share.ts';
export { isHopByHop } from './src/hop-by-hop.ts';
export { isProblem, ProblemError, problemBody } from './src/problem.ts';
export type { FieldFault, ProblemBody } from './src/problem.ts';
export { EnrollmentSecret, sealedEnrollment } from './src/enrollment-secret.ts';
export { reasonOf } from './src/reason.ts';
export { SealedFile } from './src/sealed-file.ts';
export { isUnavailable } from './src/unavailable.ts';
export { isReply, notModified, reply, type Reply } from './src/reply.ts';
export { SYSTEM } from './src/system.ts';
export type { Delivery, StreamItem } from './src/plugin.ts';
export type { Counted, Limit, LimitOptions } from './src/limit.ts';
export type { Manifest } from './src/manifest.ts';
export { type Traffic, TrafficWindow } from './src/traffic-window.ts';
