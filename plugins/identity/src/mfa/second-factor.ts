import { randomBytes } from 'node:crypto';
import type { Sealed, SealedBox, Sql } from '@platform/sdk';
import { hashOf } from '../account/step-tokens.ts';
import type { Ctx } from '../context.ts';
import type { PersonWithPassword } from '../people/person.ts';
import { base32, stepOfCode } from './totp.ts';

export type Method = 'totp' | 'recovery_code';
const SECRET_BYTES = 20;
const BEGUN_S = 600;
const RECOVERY_CODES = 10;

/** Empty for a person who signs in with the password alone. */
export const methodsOf = ({
  mfa_enrolled,
  recovery_codes_left,
}: Pick<PersonWithPassword, 'mfa_enrolled' | 'recovery_codes_left'>): Method[] =>
  mfa_enrolled ? ['totp', ...(recovery_codes_left > 0 ? (['recovery_code'] as const) : [])] : [];

/**
 * What a person has beside the password: an authenticator app, and recovery codes for the day it is lost. The app's secret is sealed; codes
 * are kept as hashes of 80 random bits.
 */
export class SecondFactor {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
  }

  /** A new secret that waits ten minutes for its first code; nothing where an app is set up already. */
  async begin(userId: string): Promise<Uint8Array | undefined> {
    const secret = randomBytes(SECRET_BYTES);
    const sealed = this.#ctx.db.sql.json(this.#box.seal(purposeOf(userId), secret.toString('base64')));
    const begun = await this.#ctx.db.sql<object[]>`
      insert into authenticators (user_id, sealed) values (${userId}, ${sealed})
      on conflict (user_id) do update set sealed = excluded.sealed, begun_at = now(), last_step = 0
        where authenticators.confirmed_at is null returning 1`;
    return begun.length > 0 ? secret : undefined;
  }

  /** What a code says while the set-up waits for it. */
  async awaited(userId: string, code: string): Promise<'expired' | 'wrong' | { step: number }> {
    const [row] = await this.#ctx.db.sql<{ sealed: Sealed }[]>`
      select sealed from authenticators where user_id = ${userId} and confirmed_at is null
        and begun_at > now() - make_interval(secs => ${BEGUN_S})`;
    const secret = row && this.#open(userId, row.sealed);
    if (!secret) return 'expired';
    const step = stepOfCode(secret, code, this.#ctx.clock.now());
    return step === undefined ? 'wrong' : { step };
  }

  /** @returns whether this call is the one that confirmed it. */
  async confirm(sql: Sql, userId: string, step: number): Promise<boolean> {
    const confirmed = await sql<
      object[]
    >`update authenticators set confirmed_at = now(), last_step = ${step} where user_id = ${userId} and confirmed_at is null
      and last_step < ${step} returning 1`;
    return confirmed.length > 0;
  }

  /** Whether a code is right, used up in the caller's transaction. Of any number at once with the same code, one is told yes (H-13). */
  async accept(sql: Sql, userId: string, method: Method, code: string): Promise<boolean> {
    if (method === 'recovery_code') {
      const used = await sql<
        object[]
      >`update recovery_codes set used_at = now() where user_id = ${userId} and code_hash = ${hashOf(plain(code))} and used_at is null
        returning 1`;
      return used.length > 0;
    }
    const [row] = await sql<{ sealed: Sealed }[]>`select sealed from authenticators where user_id = ${userId} and confirmed_at is not null`;
    const secret = row && this.#open(userId, row.sealed);
    const step = secret && stepOfCode(secret, code, this.#ctx.clock.now());
    if (step === undefined) return false;
    // Earlier steps are gone with it: a code that was seen over a shoulder is worth nothing (RFC 6238, 5.2).
    const used = await sql<
      object[]
    >`update authenticators set last_step = ${step} where user_id = ${userId} and last_step < ${step} returning 1`;
    return used.length > 0;
  }

  /** Ten codes of which each works once; the old ones are void. */
  async renewCodes(sql: Sql, userId: string): Promise<string[]> {
    const codes = Array.from({ length: RECOVERY_CODES }, () => base32(randomBytes(10)).toLowerCase());
    // Two renewals at once must not leave twenty.
    await sql`select 1 from authenticators where user_id = ${userId} for update`;
    await sql`delete from recovery_codes where user_id = ${userId}`;
    for (const code of codes) await sql`insert into recovery_codes ${sql.row({ user_id: userId, code_hash: hashOf(code) })}`;
    return codes.map(code => (code.match(/.{4}/g) as string[]).join('-'));
  }

  /** @returns whether there was one. */
  async remove(sql: Sql, userId: string): Promise<boolean> {
    await sql`delete from recovery_codes where user_id = ${userId}`;
    const removed = await sql<object[]>`delete from authenticators where user_id = ${userId} returning confirmed_at is not null as was`;
    return removed.length > 0 && (removed[0] as { was: boolean }).was;
  }

  #open(userId: string, sealed: Sealed): Buffer | undefined {
    const opened = this.#box.open(purposeOf(userId), sealed);
    return opened === undefined ? undefined : Buffer.from(opened, 'base64');
  }
}

export const purposeOf = (userId: string): string => `auth:authenticator:${userId}`;
/** People type them with or without the dashes, in any case. */
const plain = (code: string): string => code.toLowerCase().replaceAll(/[\s-]/g, '');
