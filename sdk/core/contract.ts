/** What a contract may import: pure data builders, no behaviour (house import law). */
export { defineContract } from './src/contract/contract.ts';
export type { AnyContract, Contract, EnvironmentEnd, InboxDecl, Placement, WorkloadNeeds } from './src/contract/contract.ts';
export { event, subscribe } from './src/contract/event.ts';
export type { KeyDecl, KeySeeds } from './src/contract/key.ts';
export type { EventDef, Subscription } from './src/contract/event.ts';
export { FIELD_TYPES, type FieldType } from './src/contract/page/field-type.ts';
export { ICONS, type IconName } from './src/contract/page/icon.ts';
export { CHARTS, FORMATS, PAGE_SCOPES, TONES } from './src/contract/page/page.ts';
export type {
  BoardSection,
  ColumnDecl,
  LinkDecl,
  PageAction,
  PageDecl,
  RecordTab,
  RowAction,
  RowColumn,
  Tone,
} from './src/contract/page/page.ts';
export type { Action, Gate, Principal } from './src/contract/action.ts';
export type { ProblemDecl } from './src/contract/problem.ts';
export type { ErrorForm } from './src/error-form.ts';
export { counter, gauge, histogram } from './src/contract/metric.ts';
export type { MetricDef } from './src/contract/metric.ts';
export { task } from './src/contract/task.ts';
export type { JobDef, TaskDef } from './src/contract/task.ts';
export type { TemplateDecl } from './src/contract/template.ts';
export { del, get, listener, node, post, put, raw, socket, stream, upload } from './src/contract/route.ts';
export type { AnyRoute, RouteDef, RouteEnv, RouteRate } from './src/contract/route.ts';
export { Type, type Static, type TSchema } from 'typebox';
export { CorrelationId, Id, Instant, nullable, Page, PageQuery, ServiceId, Slug, SortQuery } from './src/contract/wire.ts';
