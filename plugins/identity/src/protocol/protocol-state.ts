import type { Sealed, SealedBox } from '@platform/sdk';
import type { Adapter, AdapterPayload } from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Ctx } from '../context.ts';
import { accountOf } from '../people/people.ts';
import type { Account } from '../people/person.ts';
import { bytesOf, digestOf, ProtocolTurn, stateName, type Read, type StateName, type StateRow, writeState } from './protocol-turn.ts';

/** A client that polls must be told that time is up, so these are found a while longer (RFC 8628 3.5, CIBA 11). */
const OUTLIVES = new Set(['DeviceCode', 'BackchannelAuthenticationRequest']);
/**
 * What is asked for right after it: the two are read at one moment, so that a replay that ends a grant does not end it between them (H-13).
 */
const BESIDE: Readonly<Record<string, { readonly model: string; readonly member: 'grantId' | 'parJti' }>> = {
  AuthorizationCode: { model: 'Grant', member: 'grantId' },
  RefreshToken: { model: 'Grant', member: 'grantId' },
  DeviceCode: { model: 'Grant', member: 'grantId' },
  BackchannelAuthenticationRequest: { model: 'Grant', member: 'grantId' },
  Interaction: { model: 'PushedAuthorizationRequest', member: 'parJti' },
};
/** Used up with what the request writes. */
const AT_THE_END = new Set(['PushedAuthorizationRequest', 'AuthorizationCode']);
/**
 * In two hands, of which nobody knows which one is the thief's: what the first was given ends as well (RFC 6749 4.1.2, RFC 9700 4.14.2).
 */
const FAMILIES = new Set(['AuthorizationCode', 'RefreshToken']);
/** How a client that comes too late is refused. */
const USED_BEFORE: Readonly<Record<string, () => Error>> = {
  PushedAuthorizationRequest: () => new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used'),
  RefreshToken: () => new errors.InvalidGrant('refresh token already used'),
};
/** Stands in an interaction where its id would: the id is a cookie, and who reads the database must not hold one (F-34). */
const ID = '{id}';
const unnamed = ({ returnTo, session, ...payload }: AdapterPayload, id: string): AdapterPayload => {
  const { cookie: _cookie, ...known } = (session ?? {}) as { cookie?: string };
  return {
    ...payload,
    ...(returnTo === undefined ? {} : { returnTo: returnTo.replace(id, ID) }),
    ...(session ? { session: known as never } : {}),
  };
};
const named = <T extends { readonly returnTo?: string }>(payload: T, id: string): T =>
  payload.returnTo === undefined ? payload : { ...payload, returnTo: payload.returnTo.replace(ID, id) };
const bytes = (id: string): Buffer => bytesOf({ id_hash: digestOf(id) });
/** What a token calls the grant it came from, and the database its row: nobody redeems anything with it. */
export const grantName = digestOf;

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
  readonly #grantEnded: (grantId: string) => Promise<void>;

  /** `grantEnded` ends the access tokens of a grant, which are kept nowhere. */
  constructor(parts: {
    ctx: Ctx;
    box: SealedBox;
    clients: ClientDirectory;
    envId: string;
    model: string;
    grantEnded: (grantId: string) => Promise<void>;
  }) {
    this.#ctx = parts.ctx;
    this.#box = parts.box;
    this.#clients = parts.clients;
    this.#envId = parts.envId;
    this.#model = parts.model;
    this.#grantEnded = parts.grantEnded;
  }

  async upsert(id: string, payload: AdapterPayload, expiresIn: number): Promise<void> {
    const { jti: _jti, ...kept } = this.#model === 'Interaction' ? unnamed(payload, id) : payload;
    const turn = this.#turn;
    const name = this.#name(id);
    const row: StateRow = {
      ...name,
      // Only these are looked up by something else than their id, which a row that is changed keeps.
      id_sealed: (payload.uid || payload.userCode) && !turn?.has(name) ? this.#box.seal('protocol-id', id) : null,
      payload: kept,
      grant_id: payload.grantId ?? null,
      account_id: payload.accountId ?? null,
      uid: payload.uid ?? null,
      user_code: payload.userCode ?? null,
      expires_at: expiresIn ? new Date(Date.now() + expiresIn * 1_000).toISOString() : null,
    };
    if (this.#model === 'ReplayDetection') return this.#saveOnce(id, row);
    if (turn) turn.save(row);
    else await writeState(this.#ctx.db.sql, this.#envId, { made: [row] });
  }

  async find(id: string): Promise<AdapterPayload | undefined> {
    const turn = this.#turn;
    if (this.#model === 'Client') {
      const client = await this.#clients.find(id, this.#envId);
      if (client) await turn?.admit(id);
      return client;
    }
    const name = this.#name(id);
    const changed = turn?.changed(name);
    if (changed === null) return undefined;
    const row = changed ?? turn?.brought(name) ?? (await this.#read(name, turn));
    if (row && !changed) turn?.see(name);
    const payload = row && this.#model === 'Interaction' ? named(row.payload, id) : row?.payload;
    return row && { ...payload, jti: id, ...(row.consumed_at ? { consumed: Math.floor(Date.parse(row.consumed_at) / 1_000) } : {}) };
  }

  async findByUid(uid: string): Promise<AdapterPayload | undefined> {
    await this.#turn?.settle();
    return this.#findSealed(
      await this.#ctx.db.sql<
        { id_sealed: Sealed | null }[]
      >`select id_sealed from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and uid = ${uid} limit 1`,
    );
  }

  async findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
    await this.#turn?.settle();
    return this.#findSealed(
      await this.#ctx.db.sql<
        { id_sealed: Sealed | null }[]
      >`select id_sealed from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and user_code = ${userCode} limit 1`,
    );
  }

  /** The one who sets the mark has used it; everybody else is refused. */
  async consume(id: string): Promise<void> {
    const turn = this.#turn;
    const name = this.#name(id);
    if (turn?.changed(name)) await turn.settle();
    const late = async () => {
      if (FAMILIES.has(this.#model)) await this.#endFamily(name);
      return USED_BEFORE[this.#model]?.() ?? new errors.InvalidGrant('it was used before');
    };
    if (turn && AT_THE_END.has(this.#model)) return turn.use(name, late);
    const used = await this.#ctx.db.sql<object[]>`
      update oidc_state set consumed_at = now()
      where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${bytesOf(name)} and consumed_at is null returning 1`;
    if (used.length === 0) throw await late();
  }

  async destroy(id: string): Promise<void> {
    const turn = this.#turn;
    if (turn) turn.forget(this.#name(id));
    else await this.#ctx.db.sql`delete from oidc_state where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${bytes(id)}`;
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    this.#turn?.forgetGrant(grantId);
    await this.#ctx.db.sql`delete from oidc_state where env_id = ${this.#envId} and grant_id = ${grantId}`;
    // The library asks each model in turn; access tokens are JWTs and have no rows.
    if (this.#model === 'AccessToken') await this.#grantEnded(grantId);
  }

  /** The grant from which a row came, with all that came from it: as for a replay a moment later. */
  async #endFamily(name: StateName): Promise<void> {
    const { sql } = this.#ctx.db;
    const [lost] = await sql<{ grant_id: string | null }[]>`
      select grant_id from oidc_state where env_id = ${this.#envId} and model = ${name.model} and id_hash = ${bytesOf(name)}`;
    if (!lost?.grant_id) return;
    await this.revokeByGrantId(lost.grant_id);
    await sql`delete from oidc_state where env_id = ${this.#envId} and model = 'Grant' and id_hash = ${bytes(lost.grant_id)}`;
    await this.#grantEnded(lost.grant_id);
  }

  get #turn(): ProtocolTurn | undefined {
    return ProtocolTurn.current(this.#envId);
  }

  #name(id: string): StateName {
    return stateName(this.#model, id);
  }

  async #saveOnce(id: string, { expires_at }: StateRow): Promise<void> {
    const taken = await this.#ctx.db.sql<object[]>`
      insert into oidc_state (env_id, model, id_hash, payload, expires_at)
        values (${this.#envId}, ${this.#model}, ${bytes(id)}, '{}', ${expires_at}) on conflict do nothing returning 1`;
    if (taken.length === 0) throw new errors.InvalidRequest('this proof was used before');
  }

  async #read(name: StateName, turn: ProtocolTurn | undefined): Promise<Read | undefined> {
    const { sql } = this.#ctx.db;
    const id_hash = bytesOf(name);
    const beside = turn && BESIDE[this.#model];
    if (!beside) {
      const [row] = await sql<Read[]>`
        select payload, consumed_at from oidc_state
        where env_id = ${this.#envId} and model = ${this.#model} and id_hash = ${id_hash}
          and (expires_at is null or expires_at > now() or ${OUTLIVES.has(this.#model)})`;
      return row;
    }
    const [row] = await sql<(Read & { beside: Read['payload'] | null; beside_consumed_at: string | null; person: Account | null })[]>`
      select s.payload, s.consumed_at, b.payload as beside, b.consumed_at as beside_consumed_at, ${accountOf(sql)} as person
      from oidc_state s left join users u on u.user_id = s.account_id::uuid left join lateral (
        select payload, consumed_at from oidc_state
        where env_id = s.env_id and model = ${beside.model} and id_hash = sha256(convert_to(s.payload ->> ${beside.member}, 'UTF8'))
          and (expires_at is null or expires_at > now()) offset 0) b on true
      where s.env_id = ${this.#envId} and s.model = ${this.#model} and s.id_hash = ${id_hash}
        and (s.expires_at is null or s.expires_at > now() or ${OUTLIVES.has(this.#model)})`;
    if (!row) return undefined;
    const { payload, consumed_at, beside: other, beside_consumed_at, person } = row;
    const id = payload[beside.member];
    if (other && typeof id === 'string') turn.bring(stateName(beside.model, id), { payload: other, consumed_at: beside_consumed_at });
    if (person) turn.bringPerson(person);
    return { payload, consumed_at };
  }

  async #findSealed(rows: readonly { id_sealed: Sealed | null }[]): Promise<AdapterPayload | undefined> {
    const [row] = rows;
    const id = row?.id_sealed ? this.#box.open('protocol-id', row.id_sealed) : undefined;
    return id === undefined ? undefined : this.find(id);
  }
}
