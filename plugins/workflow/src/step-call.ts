import { isProblem, type TaskRun } from '@platform/sdk';
import { type StepDecision, type StepRequest, StepResponse } from '../contract/index.ts';
import type { Ctx } from './context.ts';
import { definitionOf } from './definitions.ts';
import { isDeeperThan } from './run-input.ts';
import type { RunRow, StepRow } from './run-records.ts';
import type { StepHandlers } from './step-handlers.ts';

type Delegate = NonNullable<StepResponse['delegate']>;
export type StepOutcome =
  | { readonly kind: 'completed'; readonly output: object | null }
  | { readonly kind: 'paused'; readonly delegate: Delegate }
  | { readonly kind: 'failed'; readonly code: string; readonly detail: string | null; readonly retryable: boolean };

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 65_536;
const MAX_DEPTH = 32;
const CODE = /^[a-z][a-z0-9_]{0,63}$/;
/** What was answered with these may be answered otherwise in a moment. */
const LATER = new Set([408, 425, 429]);

/** One call of a step, at the path that the service of its domain registered (WFL-001, WFL-004). */
export class StepCall {
  readonly #ctx: Ctx;
  readonly #handlers: StepHandlers;
  readonly #faults: (value: unknown) => readonly unknown[];

  constructor(ctx: Ctx, handlers: StepHandlers) {
    [this.#ctx, this.#handlers] = [ctx, handlers];
    this.#faults = ctx.catalog.checkOf(StepResponse);
  }

  /** Never throws for what the other side did; throws when this side was told to end. */
  async make(run: RunRow, step: StepRow, task: TaskRun): Promise<StepOutcome> {
    this.#ctx.metrics.step_calls.add(1);
    const handler = await this.#handlers.of(run.domain);
    if (!handler) return this.#failed('step_unavailable', 'Nobody answers the steps of this domain.', true);
    try {
      const { status, bytes } = await this.#ctx.actions.callBack({
        service: handler.service,
        path: handler.path,
        body: requestOf(run, step),
        envId: run.env_id,
        correlationId: task.correlationId,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
        signal: task.signal,
      });
      if (status >= 500 || LATER.has(status)) return this.#failed('step_unavailable', `${handler.service} answered ${status}.`, true);
      if (!bytes) return this.#refused(`${handler.service} answered with more than ${MAX_BYTES} bytes.`);
      return status === 200 ? this.#read(bytes, step) : this.#denied(bytes, status);
    } catch (error) {
      task.signal.throwIfAborted();
      return this.#failed(
        'step_unavailable',
        isProblem(error) ? (error.detail ?? error.title) : `${handler.service} did not answer in time.`,
        true,
      );
    }
  }

  #read(bytes: Uint8Array, step: StepRow): StepOutcome {
    const answer = parsed(bytes) as StepResponse;
    if (isDeeperThan(MAX_DEPTH, answer)) return this.#refused('The answer is nested too deep.');
    if (this.#faults(answer).length > 0) return this.#refused('The answer does not have the shape of a step’s answer.');
    // Neither character can be kept; the parser makes them of these forms alone.
    if (/\\u(?:0000|d[89a-f])/i.test(Buffer.from(bytes).toString('latin1')) && !isKeepable(answer))
      return this.#refused('The answer has a character U+0000 or half of a surrogate pair.');
    if (answer.status === 'completed') return { kind: 'completed', output: answer.output ?? null };
    if (answer.status === 'failed')
      return this.#failed(answer.error?.code ?? 'step_failed', answer.error?.message ?? null, answer.error?.retryable ?? false);
    if (!answer.delegate || step.decision)
      return this.#refused(step.decision ? 'The step paused again after its decision.' : 'The step paused and says not for whom.');
    return { kind: 'paused', delegate: answer.delegate };
  }

  /** A refusal in problem form gives its code: `unknown_step_kind` says more than its status. */
  #denied(bytes: Uint8Array, status: number): StepOutcome {
    const { code } = (parsed(bytes) ?? {}) as { code?: unknown };
    return this.#failed(typeof code === 'string' && CODE.test(code) ? code : 'step_refused', `The call was answered ${status}.`, false);
  }

  #refused(detail: string): StepOutcome {
    this.#ctx.metrics.step_answers_refused.add(1);
    return this.#failed('answer_invalid', detail, false);
  }

  #failed(code: string, detail: string | null, retryable: boolean): StepOutcome {
    this.#ctx.metrics.step_calls_failed.add(1);
    return { kind: 'failed', code, detail, retryable };
  }
}

function requestOf({ run_id, domain, env_id, workflow, input }: RunRow, { step_id, kind, attempts, decision }: StepRow): StepRequest {
  const given = definitionOf(workflow)?.inputOf(input) ?? {};
  return {
    run_id,
    step_id,
    domain,
    kind,
    env_id,
    attempt: attempts + 1,
    idempotency_key: `${run_id}:${step_id}`,
    input: given as StepRequest['input'],
    ...(decision === null ? {} : { decision: decision as StepDecision }),
  };
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}

/** Whether every text in it can be written to the database. The depth was looked at before. */
function isKeepable(value: unknown): boolean {
  if (typeof value === 'string') return !value.includes('\0') && value.isWellFormed();
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([name, inner]) => isKeepable(name) && isKeepable(inner));
}
