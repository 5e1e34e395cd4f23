import { createHash, randomBytes } from 'node:crypto';
import type { RequestOf, Sql } from '@platform/sdk';
import { cookieOf, type Headers, pageCookie } from '../sign-in/request-cookies.ts';
import type { Contract, Ctx } from '../context.ts';

export type OAuthContext = RequestOf<Contract, 'signIn'>['body']['oauth'];
/** Seconds that a step lasts: two between pages of one sign-in, two in a mail (G-AUTH-08). */
const LIFETIME = { password_change: 600, mfa: 300, password_reset: 1_800, email_verification: 86_400 } as const;
export type StepKind = keyof typeof LIFETIME;
/** G-AUTH-08 */
const TRIES = 5;
const COOKIE = '__Host-platform-step';

export interface Step {
  readonly step_id: string;
  readonly user_id: string;
  readonly amr: string[];
  readonly context: OAuthContext;
}

/**
 * What stands for a person between two pages, or in a mail: 32 random bytes of which the hash is kept. Life: issued → used or expired.
 * The request that sets the mark has used it; of any number at once that is one (H-13).
 */
export class StepTokens {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  async issue(
    sql: Sql,
    kind: StepKind,
    userId: string,
    more: { amr?: readonly string[]; context?: OAuthContext } = {},
  ): Promise<{ token: string; stepId: string; expires: Date }> {
    const token = randomBytes(32).toString('base64url');
    const stepId = this.#ctx.platform.newId();
    const [row] = await sql<[{ expires_at: string }]>`
      insert into step_tokens (token_hash, step_id, kind, user_id, amr, context, expires_at)
      values (${hashOf(token)}, ${stepId}, ${kind}, ${userId}, ${[...(more.amr ?? [])]}::text[], ${sql.json(more.context ?? {})},
        now() + make_interval(secs => ${LIFETIME[kind]}))
      returning expires_at`;
    return { token, stepId, expires: new Date(row.expires_at) };
  }

  /** A look that uses nothing up. */
  async find(kind: StepKind, token: string | undefined): Promise<Step | undefined> {
    if (!token) return undefined;
    const [row] = await this.#ctx.db.sql<Step[]>`
      select step_id, user_id, amr, context from step_tokens where token_hash = ${hashOf(token)} and kind = ${kind} and used_at is null
        and expires_at > now()`;
    return row;
  }

  /** @returns whether this call is the one that used it. */
  async use(sql: Sql, { step_id }: Step): Promise<boolean> {
    const used = await sql<
      object[]
    >`update step_tokens set used_at = now() where step_id = ${step_id} and used_at is null and expires_at > now() returning 1`;
    return used.length > 0;
  }

  /** Counts a try before it is looked at, so that tries in parallel are counted too; nothing when there was none left. */
  async try(kind: StepKind, token: string | undefined, stepId: string): Promise<Step | undefined> {
    if (!token) return undefined;
    const [row] = await this.#ctx.db.sql<Step[]>`
      update step_tokens set tries = tries + 1
      where token_hash = ${hashOf(token)} and step_id::text = ${stepId} and kind = ${kind} and used_at is null and expires_at > now()
        and tries < ${TRIES}
      returning step_id, user_id, amr, context`;
    return row;
  }

  /** Every step of a person that is still open: what they were issued for is no longer so. */
  async voidAll(sql: Sql, userId: string): Promise<void> {
    await sql`update step_tokens set used_at = now() where user_id = ${userId} and used_at is null`;
  }

  /** The step of this browser: an HttpOnly cookie, so that nobody goes on with it elsewhere. */
  ofBrowser(headers: Headers): string | undefined {
    return cookieOf(headers, COOKIE);
  }

  cookie(kind: StepKind, token: string): string {
    return pageCookie(COOKIE, token, { sameSite: 'strict', maxAge: LIFETIME[kind] });
  }
}

export const hashOf = (value: string): Buffer => createHash('sha256').update(value).digest();
