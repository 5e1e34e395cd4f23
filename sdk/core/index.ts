export type { Operator, PlatformCommand } from './src/contract/command.ts';
export { commandOf, readArguments, verbs } from './src/contract/command.ts';
export * from './contract.ts';
export { definePlugin } from './src/context/plugin.ts';
export type { AnyPlugin, Plugin, PluginBehaviour } from './src/context/plugin.ts';
export type { AtEnd } from './src/data/at-end.ts';
export type { Backends, Forwarded, KeyValue, Sealed, SealedBox, SealedPlace } from './src/contract/capabilities.ts';
export type {
  ActionCall,
  Actions,
  CallBack,
  CalledBack,
  PermittedCall,
  PlatformActions,
  RegisteredAction,
} from './src/request/actions.ts';
export type { Catalog, LivingService } from './src/context/catalog.ts';
export type { Context } from './src/context/context.ts';
export type { PlatformContext } from './src/context/platform/platform-context.ts';
export type { Logger } from './src/context/logger.ts';
export type { Caller, MachineCaller, UserCaller } from './src/request/caller.ts';
export type { Client } from './src/request/client.ts';
export type { Connection, NodeExchange, RawExchange } from './src/request/exchange.ts';
export type { Request, RequestOf, UploadOf } from './src/request/request.ts';
export type { EnvironmentRows } from './src/data/environment-rows.ts';
export type { AuditEntry, EmitEntry, Tx } from './src/data/tx.ts';
export type { EnqueueOptions, LeftTask, TaskQueue, TaskRun } from './src/context/work/task-queue.ts';
export type { OrderKind, PagePart, PageRows, PageSpec } from './src/data/paging.ts';
export { sorted } from './src/data/paging.ts';
export type { Sql } from './src/data/sql.ts';
export type { Cache, CacheOptions } from './src/context/cache.ts';
export type { Possession, TokenChecks, TokenClaims, VerificationKey } from './src/context/token-claims.ts';
export type { ExplainedDecision, PolicyInquiry } from './src/context/platform/policy-inquiry.ts';
export { StoreAbsent } from './src/context/platform/process-host.ts';
export type {
  ControlAnswer,
  ControlRequest,
  HealthAnswer,
  InstanceRegistry,
  InstanceRow,
  CompanionProcess,
  KnownProcess,
  MachineUsage,
  ProcessHost,
  ProcessId,
  ProcessNews,
  Runnable,
  SpawnRequest,
} from './src/context/platform/process-host.ts';
export type { IssuedCertificate, LeafOrder, SigningAuthority } from './src/context/platform/signing-authority.ts';
export { admits, admitsCoding } from './src/accept.ts';
export { BoundedMap } from './src/bounded-map.ts';
export { Batcher, type BatcherOptions } from './src/batcher.ts';
export { brokenConstraint } from './src/broken-constraint.ts';
export { nameOf } from './src/caller-name.ts';
export type { CronTimes } from './src/context/work/cron-times.ts';
export { ERROR_FORMS, errorBody } from './src/error-form.ts';
export { gateActions } from './src/contract/action.ts';
export { wireNameOf } from './src/contract/metric.ts';
export { recordParameter } from './src/contract/page/record-parameter.ts';
export { milliseconds } from './src/duration.ts';
export { readOptional } from './src/files/optional-file.ts';
export { replaceFile, replaceFiles } from './src/files/replaced-file.ts';
export { FairShare, type FairShareOptions } from './src/fair-share.ts';
export { EVENT_STREAM_HEADERS, eventFrame, HEARTBEAT_FRAME } from './src/wire/event-frame.ts';
export { announced, isHopByHop, mayTrail } from './src/wire/hop-by-hop.ts';
export { KERNEL_PROBLEMS, type KernelProblemCode } from './src/contract/kernel-problems.ts';
export { isProblem, ProblemError, problemBody } from './src/contract/problem.ts';
export type { FieldFault, ProblemBody } from './src/contract/problem.ts';
export { EnrollmentSecret, sealedEnrollment } from './src/secrets/enrollment-secret.ts';
export { isCorrelationId, isId } from './src/id.ts';
export { networkOf } from './src/wire/network.ts';
export { FLEET_KEYS } from './src/wire/fleet-keys.ts';
export { platformHost, platformLabel, platformZone } from './src/wire/platform-host.ts';
export { NameLook, NameServers, type UnansweredQuestion } from './src/wire/name-servers.ts';
export { isPrivateAddress } from './src/wire/private-address.ts';
export { StoredObjects } from './src/stored-objects.ts';
export { reasonOf } from './src/reason.ts';
export { SealedFile } from './src/secrets/sealed-file.ts';
export { isUnavailable } from './src/unavailable.ts';
export { isReply, notModified, reply, type Reply } from './src/request/reply.ts';
export { SYSTEM } from './src/context/system.ts';
export type { Delivery, StreamItem } from './src/request/delivery.ts';
export type { Lock, Locked, LockOptions } from './src/context/lock.ts';
export type { BucketOptions, Counted, Limit, LimitOptions, ProcessLimit, ProcessLimitOptions, WindowOptions } from './src/context/limit.ts';
export type { Manifest } from './src/contract/manifest.ts';
export { errorsOf, readTraffic, timedOf, type Traffic, TrafficWindow } from './src/traffic-window.ts';
