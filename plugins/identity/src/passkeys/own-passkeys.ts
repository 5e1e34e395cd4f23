import type { RequestOf } from '@platform/sdk';
import { verifyRegistrationResponse } from '@simplewebauthn/server';
import type { AccountMailbox, Notice } from '../account/account-mail.ts';
import type { SignInMeans } from '../account/sign-in-means.ts';
import type { AccountVisit, Visit } from '../account/account-visit.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import type { Realms } from '../realms.ts';
import { CHALLENGE_S, type PasskeyChallenges } from './passkey-challenges.ts';

interface Parts {
  readonly challenges: PasskeyChallenges;
  readonly mailbox: AccountMailbox;
  readonly means: SignInMeans;
  readonly realms: Realms;
  readonly visits: AccountVisit;
}
interface Row {
  readonly passkey_id: string;
  readonly name: string;
  readonly synced: boolean;
  readonly suspended: boolean;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** EdDSA, ES256, RS256 (COSE): what platform authenticators and security keys have. */
const ALGORITHMS = [-8, -7, -257];
const MOST = 20;

/** The passkeys of a person, at the own account. A new one asks for the password once more, where there is one. */
export class OwnPasskeys {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async list(request: RequestOf<Contract, 'ownPasskeys'>) {
    const { person } = this.#on(await this.#parts.visits.reading(request));
    const items = await this.#ctx.db.sql<Row[]>`
      select passkey_id, name, synced, suspended_at is not null as suspended, created_at, last_used_at from passkeys
      where user_id = ${person.user_id} order by created_at, passkey_id limit ${MOST}`;
    return { items: [...items] };
  }

  async begin(request: RequestOf<Contract, 'beginPasskey'>) {
    const { realm, person } = this.#on(await this.#parts.visits.proven(request, request.body.password));
    const known = await this.#ctx.db.sql<
      { credential_id: Uint8Array }[]
    >`select credential_id from passkeys where user_id = ${person.user_id} limit ${MOST}`;
    if (known.length >= MOST) throw this.#tooMany();
    return {
      challenge: await this.#parts.challenges.issue(realm, person.user_id),
      rp_id: realm.host,
      rp_name: realm.host,
      timeout_ms: CHALLENGE_S * 1_000,
      user: {
        id: Buffer.from(person.user_id).toString('base64url'),
        name: person.email,
        display_name: person.display_name ?? person.email,
      },
      algorithms: ALGORITHMS,
      exclude: known.map(({ credential_id }) => Buffer.from(credential_id).toString('base64url')),
    };
  }

  async finish(request: RequestOf<Contract, 'finishPasskey'>) {
    const visit = this.#on(await this.#parts.visits.changing(request));
    const { realm, person } = visit;
    const { credential, name } = request.body;
    const made = await this.#verified(visit, credential);
    return this.#ctx.db.tx(async tx => {
      // One after the other, so that no number at once passes the most there may be.
      await tx.sql`select 1 from users where user_id = ${person.user_id} for update`;
      const [{ count }] = await tx.sql<[{ count: number }]>`select count(*)::int as count from passkeys where user_id = ${person.user_id}`;
      if (count >= MOST) throw this.#tooMany();
      const row = {
        passkey_id: this.#ctx.platform.newId(),
        env_id: realm.env_id,
        user_id: person.user_id,
        credential_id: Buffer.from(made.id, 'base64url'),
        public_key: Buffer.from(made.publicKey),
        counter: made.counter,
        transports: credential.transports,
        name: name.trim(),
        synced: made.synced,
      };
      const [kept] = await tx.sql<Row[]>`
        insert into passkeys ${tx.sql.row(row)} on conflict (env_id, credential_id) do nothing
        returning passkey_id, name, synced, false as suspended, created_at, last_used_at`;
      if (!kept) throw this.#ctx.problem('passkey_refused', { detail: 'This passkey is set up already.' });
      await this.#record(tx, visit, 'auth.passkey.added', kept.passkey_id, 'passkey_added');
      return kept;
    });
  }

  async rename(request: RequestOf<Contract, 'renamePasskey'>) {
    const { person } = this.#on(await this.#parts.visits.changing(request));
    const [row] = await this.#ctx.db.sql<Row[]>`
      update passkeys set name = ${request.body.name.trim()} where passkey_id = ${request.params.passkey_id}
        and user_id = ${person.user_id}
      returning passkey_id, name, synced, suspended_at is not null as suspended, created_at, last_used_at`;
    if (!row) throw this.#missing();
    return row;
  }

  async remove(request: RequestOf<Contract, 'removePasskey'>): Promise<void> {
    const visit = this.#on(await this.#parts.visits.changing(request));
    const { passkey_id } = request.params;
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<
        object[]
      >`delete from passkeys where passkey_id = ${passkey_id} and user_id = ${visit.person.user_id} returning 1`;
      if (gone.length === 0) throw this.#missing();
      await this.#parts.means.requireSome(tx, visit.person);
      await this.#record(tx, visit, 'auth.passkey.removed', passkey_id, 'passkey_removed');
    });
  }

  async #verified(
    { realm, person }: Visit,
    { id, client_data: clientDataJSON, attestation_object: attestationObject }: RequestOf<Contract, 'finishPasskey'>['body']['credential'],
  ) {
    const { challenges, realms } = this.#parts;
    let current = false;
    const expectedChallenge = async (challenge: string) => {
      current = await challenges.use(realm, challenge, person.user_id);
      return current;
    };
    try {
      const { verified, registrationInfo } = await verifyRegistrationResponse({
        response: { id, rawId: id, type: 'public-key', response: { clientDataJSON, attestationObject }, clientExtensionResults: {} },
        expectedChallenge,
        expectedOrigin: realms.issuer(realm),
        expectedRPID: realm.host,
        requireUserVerification: true,
        supportedAlgorithmIDs: ALGORITHMS,
      });
      if (verified) return { ...registrationInfo.credential, synced: registrationInfo.credentialBackedUp };
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'a new passkey was refused');
      if (!current) throw this.#ctx.problem('token_expired', { detail: 'Begin to add the passkey again.' });
    }
    throw this.#ctx.problem('passkey_refused', { detail: 'The authenticator did not answer as it should. Begin again.' });
  }

  #on(visit: Visit): Visit {
    if (!visit.realm.passkeys) throw this.#ctx.problem('passkeys_off', { detail: 'Ask an administrator to turn them on.' });
    return visit;
  }

  #missing() {
    return this.#ctx.problem('passkey_not_found', { detail: 'Reload the page: it was removed already.' });
  }

  #tooMany() {
    return this.#ctx.problem('too_many_passkeys', { detail: `Remove one first: ${MOST} are the most.` });
  }

  async #record(tx: IdentityTx, { realm, person }: Visit, action: string, passkeyId: string, notice: Notice): Promise<void> {
    await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
    await tx.audit({ action, envId: realm.env_id, resource: { type: 'user', id: person.user_id }, details: { passkey_id: passkeyId } });
    await this.#parts.mailbox.tell(tx, realm, person, notice);
  }
}
