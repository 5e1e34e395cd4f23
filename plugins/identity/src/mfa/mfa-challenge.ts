import type { RequestOf } from '@platform/sdk';
import type { Arrival } from '../account/arrival.ts';
import type { AccountMailbox } from '../account/account-mail.ts';
import type { StepTokens } from '../account/step-tokens.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Contract, Ctx } from '../context.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import type { People } from '../people/people.ts';
import type { Realms } from '../realms.ts';
import type { SecondFactor } from './second-factor.ts';

interface Parts {
  readonly arrival: Arrival;
  readonly attempts: Attempts;
  readonly factor: SecondFactor;
  readonly guard: PageGuard;
  readonly mailbox: AccountMailbox;
  readonly people: People;
  readonly realms: Realms;
  readonly steps: StepTokens;
}

/** The second factor during a sign-in: five minutes and five tries for the browser that knew the password (G-AUTH-08). */
export class MfaChallenge {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async verify({ body, headers, hostname, ip }: RequestOf<Contract, 'verifyMfa'>) {
    const { arrival, attempts, factor, guard, mailbox, people, realms, steps } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const expired = () => this.#ctx.problem('token_expired', { detail: 'Sign in again with your password.' });
    const step = await steps.try('mfa', steps.ofBrowser(headers), body.challenge_id);
    const person = step && (await people.withPassword(step.user_id));
    if (!step || person?.status !== 'active' || person.env_id !== realm.env_id) throw expired();
    const account = attempts.secondFactor(person.user_id);
    const failures = await attempts.admit(account, ip);
    const right = await this.#ctx.db.tx(async tx => {
      if (!(await factor.accept(tx.sql, person.user_id, body.method, body.code))) return false;
      // Both or neither: a code is not used up by a step that was finished meanwhile.
      if (!(await steps.use(tx.sql, step))) throw expired();
      if (body.method === 'recovery_code') {
        await mailbox.tell(tx, realm, person, 'recovery_code_used');
        await tx.audit({ action: 'auth.mfa.recovery_code_used', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
      }
      return true;
    });
    if (!right) {
      await attempts.recordLock(failures, 'auth.mfa.locked', realm.env_id, person.user_id);
      throw this.#ctx.problem('invalid_code', {
        detail: body.method === 'totp' ? 'Enter the code that the app shows now.' : 'Each recovery code works once.',
      });
    }
    await attempts.succeeded(account);
    return arrival.proceed(realm, person, {
      oauth: step.context,
      headers,
      amr: body.method === 'totp' ? [...step.amr, 'otp', 'mfa'] : [...step.amr, 'mfa'],
    });
  }
}
