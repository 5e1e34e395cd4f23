import { type RequestOf, reply } from '@platform/sdk';
import { note, realmOf } from '../../access/access-model.ts';
import { bumpAccess } from '../../access/access-version.ts';
import type { Attempts } from '../../sign-in/attempts.ts';
import type { Contract, Ctx, IdentityTx } from '../../context.ts';
import type { PageGuard } from '../../sign-in/page-guard.ts';
import type { Invited } from './invited.ts';
import type { PasswordDesk } from '../password/password-desk.ts';
import type { People } from '../../people/people.ts';
import type { Person } from '../../people/person.ts';
import type { Realm, Realms } from '../../realms.ts';
import type { AccountMailbox } from '../account-mail.ts';
import { type AccountRequests, type Answer, type Asked, askedBy } from '../account-requests.ts';
import { pathWith } from '../arrival.ts';
import type { SignUpPolicy } from './sign-up-policy.ts';
import type { StepTokens } from '../step-tokens.ts';

export interface SignUpParts {
  readonly attempts: Attempts;
  readonly guard: PageGuard;
  readonly invited: Invited;
  readonly mailbox: AccountMailbox;
  readonly passwords: PasswordDesk;
  readonly people: People;
  readonly policy: SignUpPolicy;
  readonly realms: Realms;
  readonly steps: StepTokens;
}

/** Opening an account. It never completes an authorization: the person confirms the address and signs in (SGN-041). */
export class SignUp {
  readonly #ctx: Ctx;
  readonly #parts: SignUpParts;

  constructor(ctx: Ctx, parts: SignUpParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** The same answer after the same work, no matter who has the address: the password is hashed and the wish written down. */
  async ask(requests: AccountRequests, { body, headers, hostname, ip }: RequestOf<Contract, 'signUp'>) {
    const { attempts, guard, passwords, policy, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    await guard.require(realm, headers);
    const email = body.email.trim();
    const account = attempts.account(realm.env_id, email);
    await attempts.slow(account, ip);
    const { client_id, invitation } = body.oauth;
    const invited = await this.#parts.invited.admits(realm, invitation, email);
    const { allowed, group } = await policy.of(realm, client_id).catch(cause => {
      throw this.#ctx.problem('registry_away', { cause, detail: 'Try again in a moment.', headers: { 'retry-after': '5' } });
    });
    if (!allowed && !invited) throw this.#ctx.problem('signup_disabled', { detail: 'Ask somebody who is already there to invite you.' });
    passwords.require(body.password, email);
    // G-K-19: the owner of the address is not told more often than that by mail, from wherever it is signed up with.
    const mayMail = await attempts.mayMail('sign_up', account);
    const password_hash = await passwords.hash(body.password);
    const display_name = body.display_name?.trim().replaceAll(/\s+/g, ' ');
    const asked = {
      ...askedBy(email, headers),
      password_hash,
      ...(display_name ? { display_name } : {}),
      ...(group ? { group } : {}),
      ...(client_id ? { client_id } : {}),
      ...(invited && invitation ? { invitation } : {}),
    };
    if (mayMail) await requests.write(realm, 'sign_up', asked);
    return reply({ status: 'verification_required' as const, next: pathWith('/verify-email', body.oauth) }, {});
  }

  /** Somebody who is there already is told by mail; nothing of a confirmed account changes. */
  readonly open: Answer = async (tx, realm, asked) => {
    const { mailbox, people, steps } = this.#parts;
    const userId = this.#ctx.platform.newId();
    const row = {
      user_id: userId,
      env_id: realm.env_id,
      email: asked.email,
      email_ci: asked.email.toLowerCase(),
      display_name: asked.display_name ?? null,
      locale: asked.locale ?? null,
    };
    const [made] = await tx.sql<object[]>`insert into users ${tx.sql.row(row)} on conflict do nothing returning 1`;
    if (!made) {
      const known = await people.byEmail(realm.env_id, asked.email, tx.sql);
      const person = known && { ...known, locale: asked.locale ?? known.locale };
      if (person?.email_verified) await mailbox.alreadyThere(tx, realm, person, asked);
      else if (person && realm.verify_email && person.last_sign_in_at === null) await this.#contest(tx, realm, person);
      else if (person)
        await mailbox.confirmAddress(
          tx,
          realm,
          person,
          await steps.issue(tx.sql, 'email_verification', person.user_id, contextOf(asked)),
          asked,
        );
      return undefined;
    }
    await tx.sql`insert into passwords ${tx.sql.row({ user_id: userId, hash: asked.password_hash })}`;
    await this.#join(tx, realm, userId, asked);
    await mailbox.confirmAddress(
      tx,
      realm,
      { user_id: userId, email: asked.email, locale: asked.locale ?? null },
      await steps.issue(tx.sql, 'email_verification', userId, contextOf(asked)),
      asked,
    );
    await tx.emit('platform:auth:user:created', realm.env_id, { user_id: userId, env_id: realm.env_id });
    await tx.audit({
      action: 'auth.user.signed_up',
      envId: realm.env_id,
      resource: { type: 'user', id: userId },
      details: asked.client_id ? { client_id: asked.client_id } : {},
    });
    return () => bumpAccess(this.#ctx, [realm.env_id]);
  };

  async putRole({ params: { group, role }, headers, caller }: RequestOf<Contract, 'putSignUpRole'>) {
    const envId = realmOf(this.#ctx, { headers });
    await this.#ctx.db.tx(async tx => {
      if ((await tx.sql<object[]>`select 1 from user_groups where env_id = ${envId} and name = ${group}`).length === 0)
        throw this.#ctx.problem('group_not_found', { detail: `No group ${group} in this realm.` });
      if ((await tx.sql<object[]>`select 1 from roles where env_id = ${envId} and name = ${role}`).length === 0)
        throw this.#ctx.problem('role_not_found', { detail: `No role ${role} in this realm.` });
      const given = await tx.sql<object[]>`
        insert into sign_up_roles ${tx.sql.row({ env_id: envId, group_name: group, role })} on conflict do nothing returning 1`;
      if (given.length > 0) await note(tx, { envId, caller }, 'auth.group.sign_up_role_given', { group }, { role });
    });
    return { group, role };
  }

  async deleteRole({ params: { group, role }, headers, caller }: RequestOf<Contract, 'deleteSignUpRole'>): Promise<void> {
    const envId = realmOf(this.#ctx, { headers });
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<object[]>`
        delete from sign_up_roles where env_id = ${envId} and group_name = ${group} and role = ${role} returning 1`;
      if (gone.length > 0) await note(tx, { envId, caller }, 'auth.group.sign_up_role_taken', { group }, { role });
    });
  }

  /**
   * Nobody has confirmed the address, and two ask for it with a password each: had the first one's stood, a stranger could wait in an
   * account until its owner opens it. Neither stands. Nobody has used the account, who would be locked out by a stranger's wish.
   */
  async #contest(tx: IdentityTx, realm: Realm, person: Person): Promise<void> {
    const { mailbox, steps } = this.#parts;
    await tx.sql`delete from passwords where user_id = ${person.user_id}`;
    await steps.voidAll(tx.sql, person.user_id);
    await mailbox.askedTwice(tx, realm, person, await steps.issue(tx.sql, 'password_reset', person.user_id));
    await tx.audit({ action: 'auth.user.sign_up_contested', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
  }

  /** Groups are never made up (IDN): an application whose group is gone gives its people nothing, and its operators read why. */
  async #join(tx: IdentityTx, realm: Realm, userId: string, { group }: Asked): Promise<void> {
    if (!group) return;
    const joined = await tx.sql<object[]>`
      insert into group_members (env_id, group_name, user_id) select env_id, name, ${userId}::uuid from user_groups
        where env_id = ${realm.env_id} and name = ${group} returning 1`;
    if (joined.length === 0) return this.#ctx.log.error({ group }, 'the group that a new account joins does not exist');
    await tx.sql`insert into user_roles (env_id, user_id, role) select env_id, ${userId}::uuid, role from sign_up_roles
      where env_id = ${realm.env_id} and group_name = ${group}`;
  }
}

/** What the link of the mail goes on with. */
const contextOf = ({ invitation }: Asked) => (invitation === undefined ? {} : { context: { invitation } });
