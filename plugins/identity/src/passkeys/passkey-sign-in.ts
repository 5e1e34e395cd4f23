import type { RequestOf } from '@platform/sdk';
import { verifyAuthenticationResponse } from '@simplewebauthn/server';
import type { AccountMailbox, Recipient } from '../account/account-mail.ts';
import type { Arrival } from '../account/arrival.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { Realm, Realms } from '../realms.ts';
import { CHALLENGE_S, type PasskeyChallenges } from './passkey-challenges.ts';

interface Parts {
  readonly arrival: Arrival;
  readonly attempts: Attempts;
  readonly challenges: PasskeyChallenges;
  readonly guard: PageGuard;
  readonly mailbox: AccountMailbox;
  readonly people: People;
  readonly realms: Realms;
}
interface Kept {
  readonly passkey_id: string;
  readonly user_id: string;
  readonly public_key: Uint8Array;
  readonly suspended_at: string | null;
}

/** Proof of the key, and that its owner was recognised by it: both factors (RFC 8176). */
const AMR = ['pop', 'user', 'mfa'];

/** Signing in with a passkey (WebAuthn 7.2). Nobody names an account: the authenticator says whose it is, or nothing. */
export class PasskeySignIn {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async challenge({ headers, hostname, ip }: RequestOf<Contract, 'passkeyChallenge'>) {
    const { attempts, challenges } = this.#parts;
    const realm = await this.#realm(hostname, headers);
    await attempts.slow(undefined, ip);
    return { challenge: await challenges.issue(realm), rp_id: realm.host, timeout_ms: CHALLENGE_S * 1_000 };
  }

  async signIn({ body: { credential, oauth }, headers, hostname, ip }: RequestOf<Contract, 'passkeySignIn'>) {
    const { arrival, attempts, people } = this.#parts;
    const realm = await this.#realm(hostname, headers);
    await attempts.slow(undefined, ip);
    const kept = await this.#find(realm, credential.id);
    if (!kept) throw this.#refused();
    const counter = await this.#proven(realm, kept, credential);
    const person = await people.withPassword(kept.user_id);
    const handle = Buffer.from(credential.user_handle, 'base64url').toString();
    if (counter === undefined || kept.suspended_at || handle !== kept.user_id || person?.status !== 'active') throw this.#refused();
    if (!(await this.#count(kept, counter))) {
      await this.#suspend(realm, kept);
      throw this.#refused();
    }
    return arrival.proceed(realm, person, { oauth, headers, amr: AMR });
  }

  async #realm(hostname: string, headers: Parameters<PageGuard['require']>[1]): Promise<Realm> {
    const { guard, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    if (!realm.passkeys) throw this.#ctx.problem('passkeys_off', { detail: 'Sign in with your password.' });
    return realm;
  }

  async #find({ env_id }: Realm, id: string): Promise<Kept | undefined> {
    const [row] = await this.#ctx.db.sql<Kept[]>`
      select passkey_id, user_id, public_key, suspended_at from passkeys where env_id = ${env_id}
        and credential_id = ${Buffer.from(id, 'base64url')}`;
    return row;
  }

  /** @returns the counter the authenticator signed; nothing when the proof does not hold. */
  async #proven(
    realm: Realm,
    { public_key }: Kept,
    credential: RequestOf<Contract, 'passkeySignIn'>['body']['credential'],
  ): Promise<number | undefined> {
    const { challenges, realms } = this.#parts;
    let current = false;
    const expectedChallenge = async (challenge: string) => {
      current = await challenges.use(realm, challenge);
      return current;
    };
    const { id, client_data: clientDataJSON, authenticator_data: authenticatorData, signature, user_handle: userHandle } = credential;
    try {
      const { verified, authenticationInfo } = await verifyAuthenticationResponse({
        response: {
          id,
          rawId: id,
          type: 'public-key',
          response: { clientDataJSON, authenticatorData, signature, userHandle },
          clientExtensionResults: {},
        },
        expectedChallenge,
        expectedOrigin: realms.issuer(realm),
        expectedRPID: realm.host,
        requireUserVerification: true,
        // The counter is compared in the store, in the statement that sets it.
        credential: { id, publicKey: new Uint8Array(public_key), counter: 0 },
      });
      return verified ? authenticationInfo.newCounter : undefined;
    } catch (error) {
      this.#ctx.log.debug({ err: error }, 'a passkey was refused');
      if (!current) throw this.#ctx.problem('token_expired', { detail: 'Begin to sign in again.' });
      return undefined;
    }
  }

  /** WebAuthn 7.2, step 22: counters rise; authenticators without one always say zero. */
  async #count({ passkey_id }: Kept, counter: number): Promise<boolean> {
    const counted = await this.#ctx.db.sql<object[]>`
      update passkeys set counter = ${counter}, last_used_at = now()
      where passkey_id = ${passkey_id} and suspended_at is null and (counter < ${counter} or (counter = 0 and ${counter} = 0)) returning 1`;
    return counted.length > 0;
  }

  async #suspend(realm: Realm, { passkey_id, user_id }: Kept): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      const [person] = await tx.sql<Recipient[]>`
        with suspended as (update passkeys set suspended_at = now() where passkey_id = ${passkey_id} and suspended_at is null
          returning user_id)
        select user_id, email, locale from users join suspended using (user_id)`;
      if (!person) return;
      await this.#parts.mailbox.tell(tx, realm, person, 'passkey_suspended');
      await tx.audit({
        action: 'auth.passkey.cloned',
        envId: realm.env_id,
        outcome: 'denied',
        resource: { type: 'user', id: user_id },
        details: { passkey_id },
      });
    });
  }

  #refused() {
    return this.#ctx.problem('passkey_refused', { detail: 'Use another passkey, or your password.' });
  }
}
