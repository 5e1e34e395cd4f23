import type { RequestOf } from '@platform/sdk';
import { type AccountRequests, type Answer, askedBy } from '../account/account-requests.ts';
import { deviceOf } from '../account/device.ts';
import type { PasswordChange } from '../account/password/password-change.ts';
import type { PasswordDesk } from '../account/password/password-desk.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { Headers } from '../sign-in/request-cookies.ts';
import type { Contract, Ctx } from '../context.ts';
import { pageLanguage } from '../mail/page-language.ts';
import type { SecondFactor } from '../mfa/second-factor.ts';
import type { PageGuard } from '../sign-in/page-guard.ts';
import { isAddress, type People } from '../people/people.ts';
import type { Realm, Realms } from '../realms.ts';
import type { Recoveries } from './recoveries.ts';
import { ruleOf, rulesOf } from './recovery-rule.ts';

interface Parts {
  readonly attempts: Attempts;
  readonly change: PasswordChange;
  readonly factor: SecondFactor;
  readonly guard: PageGuard;
  readonly passwords: PasswordDesk;
  readonly people: People;
  readonly realms: Realms;
  readonly recoveries: Recoveries;
}

const PER_PASS = 100;

/**
 * A way back for somebody who lost the second factor, and perhaps the password: the proven address, then time, a decision, or both, then a
 * new password and no second factor.
 */
export class AccountRecovery {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Always the same success, after the same work (IDN-007). */
  async ask(requests: AccountRequests, { body, headers, hostname, ip }: RequestOf<Contract, 'requestRecovery'>) {
    const { attempts } = this.#parts;
    const { realm } = await this.#enter(hostname, headers);
    const email = body.email.trim();
    if (await attempts.mayMail('account_recovery', attempts.account(realm.env_id, email), ip))
      await requests.write(realm, 'account_recovery', askedBy(email, headers));
    return { status: 'ok' as const };
  }

  /** Only an address that its owner has proven gives an account away. */
  readonly begin: Answer = async (tx, realm, { email, locale }) => {
    const person = await this.#parts.people.byEmail(realm.env_id, email, tx.sql);
    if (!ruleOf(realm) || person?.status !== 'active' || !person.email_verified || !isAddress(person.email)) return undefined;
    await this.#parts.recoveries.ask(tx, realm, { ...person, locale: locale ?? person.locale });
    return undefined;
  };

  async confirm({ body, headers, hostname, ip }: RequestOf<Contract, 'confirmRecovery'>) {
    const { attempts, recoveries } = this.#parts;
    const { realm, rule } = await this.#enter(hostname, headers);
    await attempts.slow(undefined, ip);
    const confirmed = await this.#ctx.db.tx(tx =>
      recoveries.confirm(tx, realm, body.token, { rule, device: deviceOf(headers['user-agent']), locale: pageLanguage(headers) }),
    );
    if (!confirmed) throw this.#expired();
    return { needs_approval: rule.approval, ready_at: new Date(confirmed.wait_until as string).toISOString() };
  }

  /** Also where recovery was turned off meanwhile: nobody is kept from ending one. */
  async cancel({ body, headers, hostname, ip }: RequestOf<Contract, 'cancelRecovery'>) {
    const { attempts, guard, realms, recoveries } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    await attempts.slow(undefined, ip);
    if (!(await this.#ctx.db.tx(tx => recoveries.cancelByLink(tx, realm, body.token, pageLanguage(headers))))) throw this.#expired();
    return { status: 'ok' as const };
  }

  async finish({ body, headers, hostname, ip }: RequestOf<Contract, 'finishRecovery'>) {
    const { attempts, change, factor, passwords, people, recoveries } = this.#parts;
    const { realm, rule } = await this.#enter(hostname, headers);
    await attempts.slow(undefined, ip);
    const held = await this.#ctx.db.tx(tx => recoveries.held(tx, realm, rule, body.token));
    if (held?.status === 'waiting')
      throw this.#ctx.problem('recovery_waits', {
        detail: 'The rule became stricter. A mail says what is missing, and another one brings the next link.',
      });
    const person = held && (await people.byId(held.user_id));
    if (person?.status !== 'active') throw this.#expired();
    // A password that is refused does not use up the link.
    passwords.require(body.password, person.email);
    const hash = await passwords.hash(body.password);
    const reader = { ...person, locale: pageLanguage(headers) ?? person.locale };
    await change.commit(realm, reader, hash, { action: 'auth.recovery.completed', notice: 'recovery_completed' }, async tx => {
      if (!(await recoveries.complete(tx, rule, person.user_id, body.token))) throw this.#expired();
      await factor.remove(tx.sql, person.user_id);
      // Each of them is a second factor by itself.
      await tx.sql`delete from passkeys where user_id = ${person.user_id}`;
    });
    await attempts.succeeded(attempts.account(realm.env_id, person.email));
    await attempts.succeeded(attempts.secondFactor(person.user_id));
    return { status: 'ok' as const };
  }

  /**
   * One pass over what is due, or held to a rule that is not the realm's any more, each in a transaction of its own: one that fails holds
   * up no other.
   */
  async advance(signal: AbortSignal): Promise<void> {
    const { realms, recoveries } = this.#parts;
    const { sql } = this.#ctx.db;
    const rows = await sql<{ recovery_id: string; env_id: string; over: boolean }[]>`
      select recovery_id, r.env_id, expires_at <= now() as over from account_recoveries r left
        join (${rulesOf(sql, realms.system)}) rule on rule.env_id = r.env_id
      where status in ('asked', 'waiting', 'offered') and (expires_at <= now()
        or (status = 'waiting' and wait_until <= now() and (approved or not needs_approval))
        or (status in ('waiting', 'offered') and (rule.env_id is null or needs_approval <> rule.approval or wait_hours is distinct
          from rule.hours)))
      order by expires_at limit ${PER_PASS}`;
    for (const { recovery_id: id, env_id, over } of rows) {
      if (signal.aborted) return;
      const realm = await realms.find(env_id);
      try {
        await this.#ctx.db.tx(async tx => {
          if (!realm) await tx.sql`delete from account_recoveries where recovery_id = ${id}`;
          else if (over) await recoveries.expire(tx, realm, id);
          else await recoveries.advance(tx, realm, ruleOf(realm), id);
        });
      } catch (error) {
        this.#ctx.log.error({ err: error, recovery_id: id }, 'a recovery could not go on and is tried again');
      }
    }
  }

  /** The rule as it is now, not as a page was served with it. */
  async #enter(hostname: string, headers: Headers): Promise<{ realm: Realm; rule: NonNullable<ReturnType<typeof ruleOf>> }> {
    const { guard, realms } = this.#parts;
    const known = await realms.onHost(hostname);
    await guard.require(known, headers);
    const realm = await realms.ofEnv(known.env_id);
    const rule = ruleOf(realm);
    if (!rule) throw this.#ctx.problem('recovery_off', { detail: 'Ask an administrator to take the second factor away.' });
    return { realm, rule };
  }

  #expired() {
    return this.#ctx.problem('token_expired', { detail: 'Ask for the recovery again.' });
  }
}
