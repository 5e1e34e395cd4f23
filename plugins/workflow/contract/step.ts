import { Id, Type, type Static } from '@platform/sdk/contract';

/** Steps that an installed application asks of its tenant, in the order in which its listing names them. */
export const InstallStepKind = Type.Union([
  Type.Literal('KYCCheckStep'),
  Type.Literal('ApprovalReviewStep'),
  Type.Literal('DocumentUploadStep'),
]);
export type InstallStepKind = Static<typeof InstallStepKind>;

export const StepKind = Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$' });
export const Domain = Type.String({ pattern: '^[a-z][a-z0-9-]{0,62}$' });
export const Outcome = Type.Union([Type.Literal('approved', { title: 'Approved' }), Type.Literal('rejected', { title: 'Declined' })]);
const open = () => Type.Object({}, { additionalProperties: true });

/** What somebody decided about a step: `by` is the person's id. */
export const StepDecision = Type.Object({
  outcome: Outcome,
  by: Id,
  at: Type.String(),
  comment: Type.Optional(Type.String({ maxLength: 1_000 })),
});
export type StepDecision = Static<typeof StepDecision>;

/**
 * What the workflow service posts to the service that registered a domain (G-APP-06, WFL-004). `idempotency_key` names the step, and is
 * the same on every try and on the call that brings the decision: a service that keeps answers keeps them by (`idempotency_key`, with
 * or without `decision`).
 */
export const StepRequest = Type.Object({
  run_id: Id,
  step_id: Id,
  domain: Domain,
  kind: StepKind,
  env_id: Id,
  /** From 1; from 1 again after a decision. */
  attempt: Type.Integer({ minimum: 1 }),
  idempotency_key: Type.String({ minLength: 1, maxLength: 200 }),
  input: open(),
  decision: Type.Optional(StepDecision),
});
export type StepRequest = Static<typeof StepRequest>;

/** What that service answers, with 200 (G-APP-06, WFL-004). `paused` comes with `delegate`, `failed` with `error`. */
export const StepResponse = Type.Object({
  status: Type.Union([Type.Literal('completed'), Type.Literal('paused'), Type.Literal('failed')]),
  output: Type.Optional(open()),
  error: Type.Optional(
    Type.Object({
      code: Type.String({ pattern: '^[a-z][a-z0-9_]{0,63}$' }),
      message: Type.String({ maxLength: 1_000 }),
      retryable: Type.Boolean(),
    }),
  ),
  delegate: Type.Optional(
    Type.Object({
      kind: Type.Literal('manual_decision'),
      title: Type.String({ minLength: 1, maxLength: 200 }),
      /** Its members may decide: a group of the run's environment, or one of the platform's own. */
      assignee_group: Type.String({ pattern: '^[a-z0-9:_.-]{1,200}$' }),
      expires_s: Type.Literal(604_800),
    }),
  ),
});
export type StepResponse = Static<typeof StepResponse>;

/**
 * The action that a service which answers steps declares as `{service}:steps:execute`, and gates its path with: the workflow service is
 * given it.
 */
export const executesSteps = { title: 'Execute steps of workflows', principals: ['machine'], bound: true, callers: ['workflow'] } as const;
