import { createHash } from 'node:crypto';
import type { Sealed, SealedBox } from '@platform/sdk';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { ClientDirectory } from './client-directory.ts';
import type { Ctx } from './context.ts';

/** Whoever polls must be told that time is up, so these are found a while longer (RFC 8628 3.5, CIBA 11). */
const OUTLIVES = new Set(['DeviceCode', 'BackchannelAuthenticationRequest']);
const hash = (id: string) => createHash('sha256').update(id).digest();

/**
 * Where the protocol keeps its state: ids hashed, single use as compare-and-set in one statement (H-13). A code, refresh token or proof
 * that two requests present at once is taken by exactly one.
 */
export class ProtocolState implements Adapter {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #clients: ClientDirectory;
  readonly #envId: string;
  readonly #model: string;

  constructor(parts: { ctx: Ctx; box: SealedBox; clients: ClientDirectory; envId: string; model: string }) {
    this.#ctx = parts.ctx;
    this.#box = parts.box;
    this.#clients = parts.clients;
    this.#envId = parts.envId;
    this.#model = parts.model;
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { jti: _jti, ...kept } = payload;
    const { sql } = this.#ctx.db;
    const row = {
      env_id: this.#envId,
      model: this.#model,
      id_hash: hash(id),
      // Only these are looked up by something else than their id.
      id_sealed: payload.uid || payload.userCode ? sql.json(this.#box.seal('protocol-id', id)) : null,
      payload: sql.json(kept),
      grant_id: payload.grantId ?? null,
      account_id: payload.accountId ?? null,
      uid: payload.uid ?? null,
      user_code: payload.userCode ?? null,
      expires_at: expiresIn ? new Date(Date.now() + expiresIn * 1_000).toISOString() : null,
    };
    if (this.#model === 'ReplayDetection') {
      const taken = await sql<object[]>`insert into oidc_state ${sql.row(row)} on conflict do nothing returning 1`;
      if (taken.length === 0) throw new errors.InvalidRequest('this proof was used before');
      return;
    }
    await sql`
      insert into oidc_state ${sql.row(row)}
      on conflict (env_id, model, id_hash) do update set payload = excluded.payload, grant_id = excluded.grant_id, account_id = excluded.account_id,
        uid = excluded.uid, user_code = excluded.user_code, expires_at = excluded.expires_at`;
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    if (this.#model === 'Client') return this.#clients.find(id, this.#envId);
    const [row] = await this.#ctx.db.sql<{ payload: AdapterPayload; consumed_at: string | null }[]>`
      select payload, consumed_at from oidc_state
      where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${hash(id)} and (expires_at is null or expires_at > now() or ${OUTLIVES.has(this.#model)})`;
    return row && { ...row.payload, jti: id, ...(row.consumed_at ? { consumed: Math.floor(Date.parse(row.consumed_at) / 1_000) } : {}) };
  }

  async findByUid(uid: string): Promise<AdapterPayload | undefined> {
    return this.#findSealed(await this.#ctx.db.sql<{ id_sealed: Sealed | null }[]>`select id_sealed from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and uid = ${uid} limit 1`);
  }

  async findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    return this.#findSealed(
      await this.#ctx.db.sql<{ id_sealed: Sealed | null }[]>`select id_sealed from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and user_code = ${userCode} limit 1`,
    );
  }

  /** The one who sets the mark has used it; everybody else is refused. */
  async consume(id: string): Promise<void> {
    const used = await this.#ctx.db.sql<object[]>`
      update oidc_state set consumed_at = now()
      where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${hash(id)} and consumed_at is null returning 1`;
    if (used.length > 0) return;
    if (this.#model === 'PushedAuthorizationRequest') throw new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used');
    if (this.#model !== 'RefreshToken') throw new errors.InvalidGrant('it was used before');
    // Two hands hold it, and nobody knows which one is the thief's: the whole family goes, as it does for a replay a moment later.
    const [lost] = await this.#ctx.db.sql<{ grant_id: string | null }[]>`select grant_id from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${hash(id)}`;
    if (lost?.grant_id) {
      await this.revokeByGrantId(lost.grant_id);
      await this.#ctx.db.sql`delete from oidc_state where env_id = ${this.#envId} and model = 'Grant' and id_hash = ${hash(lost.grant_id)}`;
    }
    throw new errors.InvalidGrant('refresh token already used');
  }

  async destroy(id: string): Promise<void> {
    await this.#ctx.db.sql`delete from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${hash(id)}`;
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#ctx.db.sql`delete from oidc_state where env_id = ${this.#envId} and grant_id = ${grantId}`;
  }

  async #findSealed(rows: readonly { id_sealed: Sealed | null }[]): Promise<AdapterPayload | undefined> {
    const [row] = rows;
    const id = row?.id_sealed ? this.#box.open('protocol-id', row.id_sealed) : undefined;
    return id === undefined ? undefined : this.find(id);
  }
}
