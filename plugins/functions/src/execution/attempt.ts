import type { Outcome } from '../isolation/guest-pool.ts';
import type { CallRecord } from './host-calls.ts';

/** How an attempt ended, ready to be written down. */
export interface Attempt {
  readonly ok: boolean;
  readonly result: unknown;
  readonly decision?: 'accept' | 'reject';
  readonly rejectReason?: string;
  readonly directives?: { type: string }[];
  readonly code?: NonNullable<Outcome['fault']>['code'];
  readonly detail?: string;
  readonly callback?: { readonly path: string; readonly status: number };
  readonly fuelUsed: number;
  readonly memoryBytes: number;
  readonly durationMs: number;
  readonly logs: readonly string[];
  readonly calls: readonly CallRecord[];
}

/** Characters that JSON can write and the database cannot keep. What is written is escaped only where it must be. */
const UNKEPT = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/** What a guest's end means to the caller: with the hook protocol `answers` says whether a value is a hook's response (G-FUNC-05). */
export function attemptOf(
  { output, fault, fuelUsed, memoryBytes, durationMs, logs }: Outcome,
  calls: readonly CallRecord[],
  answers: ((value: unknown) => boolean) | undefined,
): Attempt {
  const told = { fuelUsed, memoryBytes, durationMs: Math.round(durationMs * 100) / 100, logs, calls };
  const failed = calls.findLast(({ status }) => status < 200 || status > 299);
  if (fault) {
    const callback = fault.code === 'callback_failed' && failed ? { callback: { path: failed.path, status: failed.status } } : {};
    return { ok: false, result: null, code: fault.code, detail: fault.detail, ...callback, ...told };
  }
  const wrong = (detail: string): Attempt => ({ ok: false, result: null, code: 'trap', detail, ...told });
  let result: unknown;
  try {
    result = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(output));
    if (UNKEPT.test(JSON.stringify(result))) return wrong('The result has a character U+0000 or half of a surrogate pair.');
  } catch {
    return wrong(answers ? 'hook_protocol' : 'The result is no JSON.');
  }
  if (!answers) return { ok: true, result, ...told };
  if (!answers(result)) return wrong('hook_protocol');
  const said = result as { decision: 'accept' | 'reject'; reject_reason?: string; directives?: { type: string }[]; result?: unknown };
  const reason = said.reject_reason === undefined ? {} : { rejectReason: said.reject_reason };
  return { ok: true, result: said.result ?? null, decision: said.decision, ...reason, directives: said.directives ?? [], ...told };
}

/** What a hook is given: the context alone, or with the hook protocol the context in its frame (G-FUNC-05). */
export function inputOf(
  { protocol, hook, context }: { readonly protocol?: 'raw' | 'hook'; readonly hook: string; readonly context: object },
  frame: {
    readonly execution_id: string;
    readonly env_id: string;
    readonly domain: string;
    readonly product: string;
    readonly module_id: string;
    readonly parameters: object;
  },
): Uint8Array {
  const { execution_id, env_id, domain, product, module_id, parameters } = frame;
  const hooked = { protocol: 'hook/1', execution_id, hook, env_id, domain, product, module_id, context, parameters };
  return Buffer.from(JSON.stringify(protocol === 'hook' ? hooked : context));
}
