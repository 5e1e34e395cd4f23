import type { RequestOf } from '@platform/sdk';
import type { Attempts } from '../../sign-in/attempts.ts';
import type { Contract, Ctx } from '../../context.ts';
import type { PageGuard } from '../../sign-in/page-guard.ts';
import type { People } from '../../people/people.ts';
import type { Realms } from '../../realms.ts';
import type { AccountMailbox } from '../account-mail.ts';
import { type AccountRequests, type Answer, askedBy } from '../account-requests.ts';
import type { Invited } from './invited.ts';
import type { StepTokens } from '../step-tokens.ts';

interface Parts {
  readonly attempts: Attempts;
  readonly guard: PageGuard;
  readonly invited: Invited;
  readonly mailbox: AccountMailbox;
  readonly people: People;
  readonly realms: Realms;
  readonly steps: StepTokens;
}

/** Proof that somebody reads the mail of an address (G-AUTH-06). Opening the link shows a page; its button consumes (H-08). */
export class EmailVerification {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async verify({ body, headers, hostname, ip }: RequestOf<Contract, 'verifyEmail'>) {
    const { attempts, guard, people, realms, steps } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    await attempts.slow(undefined, ip);
    const expired = () => this.#ctx.problem('token_expired', { detail: 'Ask for another link.' });
    const step = await steps.find('email_verification', body.token);
    const person = step && (await people.byId(step.user_id));
    if (!step || person?.env_id !== realm.env_id) throw expired();
    await this.#ctx.db.tx(async tx => {
      if (!(await steps.use(tx.sql, step))) throw expired();
      await tx.sql`update users set email_verified = true where user_id = ${person.user_id}`;
      await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
      await tx.audit({ action: 'auth.email.verified', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
    });
    const { invitation } = step.context;
    return {
      status: 'ok' as const,
      ...(invitation === undefined ? {} : { joined: await this.#parts.invited.join(invitation, person), email: person.email }),
    };
  }

  async ask(requests: AccountRequests, { body, headers, hostname, ip }: RequestOf<Contract, 'requestVerification'>) {
    const { attempts, guard, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const email = body.email.trim();
    if (await attempts.mayMail('email_verification', attempts.account(realm.env_id, email), ip))
      await requests.write(realm, 'email_verification', askedBy(email, headers));
    return { status: 'ok' as const };
  }

  readonly send: Answer = async (tx, realm, { email, locale }) => {
    const { mailbox, people, steps } = this.#parts;
    const person = await people.byEmail(realm.env_id, email, tx.sql);
    if (person?.status !== 'active' || person.email_verified) return undefined;
    await mailbox.confirmAddress(
      tx,
      realm,
      { ...person, locale: locale ?? person.locale },
      await steps.issue(tx.sql, 'email_verification', person.user_id),
    );
    return undefined;
  };
}
