import type { RequestOf } from '@platform/sdk';
import type { AccountMailbox, Notice } from '../account/account-mail.ts';
import type { AccountVisit, Visit } from '../account/account-visit.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx, IdentityTx } from '../context.ts';
import { qrCode } from './qr-code.ts';
import type { SecondFactor } from './second-factor.ts';
import { base32, otpauthUri } from './totp.ts';

interface Parts {
  readonly attempts: Attempts;
  readonly factor: SecondFactor;
  readonly mailbox: AccountMailbox;
  readonly visits: AccountVisit;
}

/** Setting up an authenticator app and taking it away again, by its owner, who shows the password once more. */
export class MfaEnrolment {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async begin(request: RequestOf<Contract, 'beginMfa'>) {
    const { factor, visits } = this.#parts;
    const { realm, person } = await visits.proven(request, request.body.password);
    const secret = await factor.begin(person.user_id);
    if (!secret) throw this.#ctx.problem('mfa_enrolled', { detail: 'Remove it first to set up another.' });
    const uri = otpauthUri(secret, { issuer: realm.host, account: person.email });
    return { secret: base32(secret), otpauth_uri: uri, qr: qrCode(uri) };
  }

  async confirm(request: RequestOf<Contract, 'confirmMfa'>) {
    const { attempts, factor, visits } = this.#parts;
    const visit = await visits.changing(request);
    const { user_id: userId } = visit.person;
    const failures = await attempts.admit(attempts.secondFactor(userId), request.ip);
    const found = await factor.awaited(userId, request.body.code);
    if (typeof found === 'string') await attempts.recordLock(failures, 'auth.mfa.locked', visit.realm.env_id, userId);
    if (found === 'expired') throw this.#ctx.problem('token_expired', { detail: 'Begin the set-up again.' });
    if (found === 'wrong') throw this.#ctx.problem('invalid_code', { detail: 'Enter the code that the app shows now.' });
    const codes = await this.#ctx.db.tx(async tx => {
      if (!(await factor.confirm(tx.sql, userId, found.step)))
        throw this.#ctx.problem('token_expired', { detail: 'Begin the set-up again.' });
      await this.#record(tx, visit, 'auth.mfa.enrolled', 'mfa_enrolled');
      return factor.renewCodes(tx.sql, userId);
    });
    await attempts.succeeded(attempts.secondFactor(userId));
    return { recovery_codes: codes };
  }

  async remove(request: RequestOf<Contract, 'removeMfa'>): Promise<void> {
    const { factor, visits } = this.#parts;
    const visit = await visits.proven(request, request.body.password);
    await this.#ctx.db.tx(async tx => {
      if (!(await factor.remove(tx.sql, visit.person.user_id))) throw this.#missing();
      await this.#record(tx, visit, 'auth.mfa.removed', 'mfa_removed');
    });
  }

  async renewCodes(request: RequestOf<Contract, 'renewRecoveryCodes'>) {
    const { factor, visits } = this.#parts;
    const visit = await visits.proven(request, request.body.password);
    if (!visit.person.mfa_enrolled) throw this.#missing();
    const codes = await this.#ctx.db.tx(async tx => {
      await this.#record(tx, visit, 'auth.mfa.recovery_codes_renewed', 'recovery_codes_renewed');
      return factor.renewCodes(tx.sql, visit.person.user_id);
    });
    return { recovery_codes: codes };
  }

  #missing() {
    return this.#ctx.problem('mfa_not_enrolled', { detail: 'Set one up first.' });
  }

  async #record(tx: IdentityTx, { realm, person }: Visit, action: string, notice: Notice): Promise<void> {
    await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
    await tx.audit({ action, envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
    await this.#parts.mailbox.tell(tx, realm, person, notice);
  }
}
