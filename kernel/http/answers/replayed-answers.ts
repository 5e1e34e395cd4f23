import { createHash, createHmac } from 'node:crypto';
import type { Request } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Sql } from '../../storage/schema/sql.ts';
import type { KeyedRequest } from '../../telemetry/request-scope.ts';
import type { Outgoing } from '../operation-call.ts';

/** How long an answer stands for its key (G-K-03). */
const KEPT_S = 86_400;
/** Longer than any request lasts: one that has not ended by then has died. */
const BROKEN_S = 120;
/** A larger answer is not kept; its replay says so. */
const MAX_ANSWER = 262_144;
const KEY = /^[\x21-\x7e]{1,255}$/;

interface Row {
  readonly fingerprint: Uint8Array;
  readonly committed: boolean;
  readonly broken: boolean;
  readonly status: number | null;
  readonly headers: Record<string, string> | null;
  readonly body: string | null;
  readonly kept: boolean;
}

/** Who asks under which key, and for what. */
export interface Keyed {
  readonly request: KeyedRequest;
  readonly fingerprint: Buffer;
  /** False where the answer shows a secret, which is kept nowhere. */
  readonly kept: boolean;
}

/**
 * The key of a request, `undefined` when it has none. `hidden`: its body may hold a password. Then the key is kept as a hash, and the hash
 * of the request is made with it: whoever reads the table cannot try passwords on it.
 */
export function keyedRequest(
  operation: string,
  request: Request,
  { kept, hidden }: { readonly kept: boolean; readonly hidden: boolean },
): Keyed | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (!KEY.test(key)) throw kernelProblem('malformed', { detail: 'Idempotency-Key has 1 to 255 visible ASCII characters.' });
  const { params, query, body, targetEnvId } = request;
  const hashOf = (text: string) => (hidden ? createHmac('sha256', key) : createHash('sha256')).update(text).digest();
  const fingerprint = hashOf(JSON.stringify([operation, params, query, body, targetEnvId]));
  const known = hidden ? `sha256:${createHash('sha256').update(key).digest('base64url')}` : key;
  return { request: { caller: whoseKey(request, fingerprint, hashOf), key: known, marked: false }, fingerprint, kept };
}

/**
 * Whose key it is. Of whom the kernel has not asked who he is, what he shows makes him the same again: a cookie, a credential, a
 * certificate. Of somebody who shows nothing only the very same request is.
 */
function whoseKey({ caller, headers, peer }: Request, fingerprint: Buffer, hashOf: (text: string) => Buffer): string {
  if (caller) return `${caller.kind}:${caller.userId ?? caller.subject}`;
  const shown = [headers['cookie'], headers['authorization'], peer?.workload];
  const sameness = shown.some(Boolean) ? hashOf(JSON.stringify(shown)) : fingerprint;
  return `anonymous:${sameness.toString('base64url')}`;
}

/**
 * Answers of creates under an `Idempotency-Key`, for 24 hours and per caller. The first transaction of the request marks its key as taken
 * effect (see `markKeyed`), so that a process which dies before its answer is kept does not let the same request happen twice.
 */
export class ReplayedAnswers {
  readonly #sql: Sql;
  readonly #now: () => Date;

  constructor(sql: Sql, now: () => Date) {
    this.#sql = sql;
    this.#now = now;
  }

  /** Runs `work` once per key; a repeat is given the first answer with `idempotent-replay: true`, or a 409 that says what became of it. */
  async run({ request, fingerprint, kept }: Keyed, work: () => Promise<Outgoing>): Promise<Outgoing> {
    const { caller, key } = request;
    const now = this.#now().toISOString();
    const [mine] = await this.#sql<object[]>`
      insert into idempotent_answers as known (caller, key, fingerprint, started_at) values (${caller}, ${key}, ${fingerprint}, ${now})
      on conflict (caller, key) do update set fingerprint = excluded.fingerprint, started_at = excluded.started_at, committed = false,
        status = null, headers = null, body = null, kept = true
        where known.started_at <= ${now}::timestamptz - make_interval(secs => ${KEPT_S})
           or (known.status is null and not known.committed
             and known.started_at <= ${now}::timestamptz - make_interval(secs => ${BROKEN_S}))
      returning 1`;
    if (!mine) return this.#earlier(request, fingerprint, now);
    let outgoing: Outgoing;
    try {
      outgoing = await work();
    } catch (error) {
      // The caller was told that it failed, and may try again under the same key.
      await this.#sql`delete from idempotent_answers where caller = ${caller} and key = ${key} and started_at = ${now}`;
      throw error;
    }
    // A cookie that signs somebody in is a secret as well.
    const keepable = kept && !('set-cookie' in outgoing.headers);
    const text = keepable && outgoing.value !== undefined ? JSON.stringify(outgoing.value) : null;
    const body = text !== null && text.length <= MAX_ANSWER ? text : null;
    const whole = keepable && (text === null || body !== null);
    await this.#sql`
      update idempotent_answers set committed = true, kept = ${whole}, status = ${outgoing.status},
        headers = ${whole ? this.#sql.json(outgoing.headers) : null}, body = ${body}
      where caller = ${caller} and key = ${key} and started_at = ${now}`;
    return outgoing;
  }

  async #earlier({ caller, key }: KeyedRequest, fingerprint: Buffer, now: string): Promise<Outgoing> {
    const [row] = await this.#sql<Row[]>`
      select fingerprint, committed, status, headers, body, kept,
        started_at <= ${now}::timestamptz - make_interval(secs => ${BROKEN_S}) as broken
      from idempotent_answers where caller = ${caller} and key = ${key}`;
    if (row && !fingerprint.equals(row.fingerprint))
      throw kernelProblem('idempotency_key_reused', { detail: 'Send another request under another key.' });
    if (row && (row.status === null ? row.committed && row.broken : !row.kept))
      throw kernelProblem('idempotency_answer_gone', { detail: 'Read what it made instead of sending it again.' });
    if (row?.status != null)
      return {
        status: row.status,
        headers: { ...row.headers, 'idempotent-replay': 'true' },
        value: row.body === null ? undefined : JSON.parse(row.body),
      };
    throw kernelProblem('idempotency_in_progress', { detail: 'Ask again in a moment.', headers: { 'retry-after': '1' } });
  }
}

/** Part of the first transaction of a request that came under a key: what it changes and that it took effect commit together. */
export async function markKeyed(sql: Sql, request: KeyedRequest | undefined): Promise<void> {
  if (!request || request.marked) return;
  await sql`update idempotent_answers set committed = true where caller = ${request.caller} and key = ${request.key}`;
}
