/** What a contract may import: pure data builders, no behaviour (house import law). */
export { defineContract } from './src/contract.ts';
export type { AnyContract, Contract, EnvironmentEnd, InboxDecl, Placement, WorkloadNeeds } from './src/contract.ts';
export { event, subscribe } from './src/event.ts';
export type { KeyDecl, KeySeeds } from './src/key.ts';
export type { EventDef, Subscription } from './src/event.ts';
export type { BoardSection, ColumnDecl, IconName, PageDecl, RecordTab, RowAction } from './src/page.ts';
export type { Action, Gate, Principal } from './src/action.ts';
export type { ProblemDecl } from './src/problem.ts';
export type { ErrorForm } from './src/error-form.ts';
export { task } from './src/task.ts';
export type { JobDef, TaskDef } from './src/task.ts';
export type { TemplateDecl } from './src/template.ts';
export { del, get, listener, node, post, put, raw, socket, stream } from './src/route.ts';
export type { AnyRoute, RouteDef, RouteEnv } from './src/route.ts';
export { Type, type Static, type TSchema } from 'typebox';
export { Id, Instant, Page, PageQuery, Slug } from './src/wire.ts';
