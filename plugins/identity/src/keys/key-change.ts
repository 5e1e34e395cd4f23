import type { Sealed, SealedBox } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { purposeOf as authenticator } from '../mfa/second-factor.ts';
import { purposeOf as recovery } from '../recovery/recoveries.ts';
import { SIGNING_KEY } from './signing-keys.ts';
import { purposeOf as provider } from '../sso/upstream-providers.ts';

const BATCH = 100;

interface Held {
  readonly id: string;
  readonly sealed: Sealed;
}
/** Where something sealed lies for long: rows under another key after an id, and the row's seal put in place of the one that was read. */
interface Place {
  readonly purpose: (id: string) => string;
  readonly stale: (kid: string, after: string) => Promise<readonly Held[]>;
  readonly replace: (held: Held, sealed: unknown) => Promise<unknown>;
}

/** Seals anew, under the key of now, what lies sealed under one that came before. What lives for days at most is left to its end. */
export class KeyChange {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;

  constructor(ctx: Ctx, box: SealedBox) {
    this.#ctx = ctx;
    this.#box = box;
  }

  async reseal(signal: AbortSignal): Promise<void> {
    const { kid } = this.#box;
    for (const place of this.#places()) {
      let rows: readonly Held[];
      let after = '';
      do {
        rows = await place.stale(kid, after);
        for (const row of rows) await this.#anew(place, row);
        after = rows.at(-1)?.id ?? after;
      } while (rows.length === BATCH && !signal.aborted);
    }
  }

  async #anew({ purpose, replace }: Place, held: Held): Promise<void> {
    const text = this.#box.open(purpose(held.id), held.sealed);
    if (text === undefined)
      return this.#ctx.log.error({ key: held.sealed.kid }, 'something sealed does not open under any key of PLATFORM_AUTH_KEY_ENCRYPTION_REF or PLATFORM_AUTH_PREVIOUS_KEY_ENCRYPTION_REFS');
    await replace(held, this.#ctx.db.sql.json(this.#box.seal(purpose(held.id), text)));
  }

  #places(): readonly Place[] {
    const { sql } = this.#ctx.db;
    return [
      {
        purpose: () => SIGNING_KEY,
        stale: (kid, after) => sql<Held[]>`select kid as id, wrapped as sealed from signing_keys where wrapped ->> 'kid' <> ${kid} and kid > ${after} order by kid limit ${BATCH}`,
        replace: ({ id, sealed: old }, sealed) => sql`update signing_keys set wrapped = ${sealed} where kid = ${id} and wrapped = ${sql.json(old)}`,
      },
      {
        purpose: authenticator,
        stale: (kid, after) => sql<Held[]>`select user_id::text as id, sealed from authenticators where sealed ->> 'kid' <> ${kid} and user_id::text > ${after} order by user_id::text limit ${BATCH}`,
        replace: ({ id, sealed: old }, sealed) => sql`update authenticators set sealed = ${sealed} where user_id = ${id} and sealed = ${sql.json(old)}`,
      },
      {
        purpose: provider,
        stale: (kid, after) =>
          sql<
            Held[]
          >`select env_id::text as id, client_secret as sealed from upstream_providers where client_secret ->> 'kid' <> ${kid} and env_id::text > ${after} order by env_id::text limit ${BATCH}`,
        replace: ({ id, sealed: old }, sealed) => sql`update upstream_providers set client_secret = ${sealed} where env_id = ${id} and client_secret = ${sql.json(old)}`,
      },
      {
        purpose: recovery,
        stale: (kid, after) =>
          sql<
            Held[]
          >`select recovery_id::text as id, cancel_sealed as sealed from account_recoveries where cancel_sealed ->> 'kid' <> ${kid} and recovery_id::text > ${after} order by recovery_id::text limit ${BATCH}`,
        replace: ({ id, sealed: old }, sealed) => sql`update account_recoveries set cancel_sealed = ${sealed} where recovery_id = ${id} and cancel_sealed = ${sql.json(old)}`,
      },
    ];
  }
}
