import { Id, type Static, Type } from '@platform/sdk/contract';
import { Domain, Outcome, StepDecision, StepKind } from './step.ts';

const nullable = Type.Union([Type.String(), Type.Null()]);
const Key = Type.String({ minLength: 1, maxLength: 200 });

export const NewHandler = Type.Object({
  service: Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' }),
  kinds: Type.Array(StepKind, { minItems: 1, maxItems: 64, uniqueItems: true }),
  path: Type.String({ pattern: '^/v1/internal(?:/[A-Za-z0-9_~:-][A-Za-z0-9._~:-]*)+$', maxLength: 200 }),
});
export type NewHandler = Static<typeof NewHandler>;
export const StepHandler = Type.Object({ domain: Domain, ...NewHandler.properties, created_at: Type.String(), updated_at: Type.String() });
export type StepHandler = Static<typeof StepHandler>;

/** `input.steps` of the workflow `app-install` names its steps in order; what else is in `input` goes to each of them. */
export const NewRun = Type.Object({
  workflow: Type.String({ minLength: 1, maxLength: 64 }),
  env_id: Id,
  input: Type.Object({}, { additionalProperties: true }),
  idempotency_key: Key,
});
export type NewRun = Static<typeof NewRun>;

export const RunStatus = Type.Union([Type.Literal('running'), Type.Literal('paused'), Type.Literal('completed'), Type.Literal('failed')], {
  title: 'State',
});
export type RunStatus = Static<typeof RunStatus>;
export const Run = Type.Object({
  run_id: Id,
  workflow: Type.String(),
  env_id: Id,
  /** Who started it. */
  service: Type.String(),
  status: RunStatus,
  /** Why it failed: of the step, or `decision_expired`, `cancelled`, `step_unavailable`. */
  code: nullable,
  detail: nullable,
  idempotency_key: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
  finished_at: nullable,
});
export type Run = Static<typeof Run>;

export const Step = Type.Object({
  step_id: Id,
  run_id: Id,
  position: Type.Integer(),
  kind: Type.String(),
  status: Type.Union([
    Type.Literal('waiting'),
    Type.Literal('running'),
    Type.Literal('paused'),
    Type.Literal('completed'),
    Type.Literal('failed'),
  ]),
  attempts: Type.Integer(),
  output: Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()]),
  code: nullable,
  detail: nullable,
  title: nullable,
  assignee_group: nullable,
  expires_at: nullable,
  decision: Type.Union([StepDecision, Type.Null()]),
  finished_at: nullable,
});
export type Step = Static<typeof Step>;
export const RunDetail = Type.Object({ ...Run.properties, steps: Type.Array(Step) });
export type RunDetail = Static<typeof RunDetail>;

/** A step that waits for somebody's decision. */
export const Waiting = Type.Object({
  step_id: Id,
  run_id: Id,
  workflow: Type.String(),
  kind: Type.String(),
  title: Type.String(),
  assignee_group: Type.String(),
  paused_at: Type.String(),
  expires_at: Type.String(),
});
export type Waiting = Static<typeof Waiting>;

const Comment = Type.Optional(
  Type.String({ title: 'Comment', description: 'Goes to the step, and is kept with the decision', maxLength: 1_000 }),
);
export const NewDecision = Type.Object({ outcome: Outcome, comment: Comment });
export type NewDecision = Static<typeof NewDecision>;
export const Commented = Type.Object({ comment: Comment });
