import type { RequestOf } from '@platform/sdk';
import type { Attempts } from '../../sign-in/attempts.ts';
import type { Contract, Ctx } from '../../context.ts';
import { pageLanguage } from '../../mail/page-language.ts';
import type { PageGuard } from '../../sign-in/page-guard.ts';
import type { People } from '../../people/people.ts';
import type { Realms } from '../../realms.ts';
import type { AccountMailbox } from '../account-mail.ts';
import { type AccountRequests, type Answer, askedBy } from '../account-requests.ts';
import type { PasswordChange } from './password-change.ts';
import type { PasswordDesk } from './password-desk.ts';
import type { StepTokens } from '../step-tokens.ts';

interface Parts {
  readonly attempts: Attempts;
  readonly change: PasswordChange;
  readonly guard: PageGuard;
  readonly mailbox: AccountMailbox;
  readonly passwords: PasswordDesk;
  readonly people: People;
  readonly realms: Realms;
  readonly steps: StepTokens;
}

/** A new password for somebody who forgot the old one and reads the account's mail. It signs nobody in, and takes no second factor away. */
export class PasswordReset {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Always the same success, after the same work (IDN-007). */
  async ask(requests: AccountRequests, { body, headers, hostname, ip }: RequestOf<Contract, 'requestPasswordReset'>) {
    const { attempts, guard, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const email = body.email.trim();
    if (await attempts.mayMail('password_reset', attempts.account(realm.env_id, email), ip))
      await requests.write(realm, 'password_reset', askedBy(email, headers));
    return { status: 'ok' as const };
  }

  readonly send: Answer = async (tx, realm, { email, locale }) => {
    const { mailbox, people, steps } = this.#parts;
    const person = await people.byEmail(realm.env_id, email, tx.sql);
    if (person?.status !== 'active') return undefined;
    await mailbox.resetPassword(
      tx,
      realm,
      { ...person, locale: locale ?? person.locale },
      await steps.issue(tx.sql, 'password_reset', person.user_id),
    );
    await tx.audit({ action: 'auth.password.reset_requested', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
    return undefined;
  };

  async reset({ body, headers, hostname, ip }: RequestOf<Contract, 'resetPassword'>) {
    const { attempts, change, guard, passwords, people, realms, steps } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    await attempts.slow(undefined, ip);
    const expired = () => this.#ctx.problem('token_expired', { detail: 'Ask for another link.' });
    const step = await steps.find('password_reset', body.token);
    const person = step && (await people.byId(step.user_id));
    if (!step || person?.status !== 'active' || person.env_id !== realm.env_id) throw expired();
    // A password that is refused does not use up the link.
    passwords.require(body.password, person.email);
    const hash = await passwords.hash(body.password);
    const reader = { ...person, locale: person.locale ?? pageLanguage(headers) ?? null };
    await change.commit(realm, reader, hash, { action: 'auth.password.reset' }, async tx => {
      if (!(await steps.use(tx.sql, step))) throw expired();
      // The holder of the link reads the mail of the address.
      await tx.sql`update users set email_verified = true where user_id = ${person.user_id}`;
    });
    await attempts.succeeded(attempts.account(realm.env_id, person.email));
    return { status: 'ok' as const };
  }
}
