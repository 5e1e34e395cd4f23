import { type Caller, isId } from '@platform/sdk';
import type { AccountMailbox } from '../account/account-mail.ts';
import type { AccountRemoval } from '../account/account-removal.ts';
import type { PasswordChange } from '../account/password/password-change.ts';
import type { PasswordDesk } from '../account/password/password-desk.ts';
import type { StepTokens } from '../account/step-tokens.ts';
import { bumpPeople } from '../access/access-version.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import type { LastAdministrator } from '../access/last-administrator.ts';
import { isAddress } from '../people/people.ts';
import type { Realm } from '../realms.ts';
import type { Recoveries } from '../recovery/recoveries.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import { readUser, type ScimDocument } from './scim-document.ts';
import { ScimError } from './scim-error.ts';
import { listPeople, type ScimQuery } from './scim-listing.ts';
import { patched } from './scim-patch.ts';
import { languageIn, recordColumns, type ScimRecord, storedOf, tagOf, writableOf } from './scim-record.ts';
import { USER } from './scim-user-schema.ts';

const UNIQUE_VIOLATION = '23505';

export interface ScimUsersParts {
  readonly administrators: LastAdministrator;
  readonly change: PasswordChange;
  readonly mailbox: AccountMailbox;
  readonly passwords: PasswordDesk;
  readonly recoveries: Recoveries;
  readonly removal: AccountRemoval;
  readonly sessions: Sessions;
  readonly steps: StepTokens;
}
/** Who asks, in which realm, and which version of the resource is meant (`If-Match`). */
export interface ScimCall {
  readonly caller: Caller;
  readonly realm: Realm;
  readonly ifMatch: string | undefined;
}

/** People of a realm, kept by a directory (RFC 7644, 3). They are the same accounts that people open themselves. */
export class ScimUsers {
  readonly #ctx: Ctx;
  readonly #parts: ScimUsersParts;

  constructor(ctx: Ctx, parts: ScimUsersParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  list(realm: Realm, query: ScimQuery) {
    return listPeople(this.#ctx.db.sql, realm.env_id, query);
  }

  async get(realm: Realm, id: string): Promise<ScimRecord> {
    const { sql } = this.#ctx.db;
    const [record] = isId(id)
      ? await sql<ScimRecord[]>`select ${recordColumns(sql)} from users u left join scim_users s using (user_id) where u.user_id = ${id}
          and u.env_id = ${realm.env_id}`
      : [];
    if (!record) throw new ScimError(404, `No user ${id}.`);
    return record;
  }

  /** Without a password the person chooses one by mail; until then nobody signs in. */
  async create({ caller, realm }: ScimCall, body: unknown): Promise<ScimRecord> {
    const { steps, mailbox } = this.#parts;
    const { columns, active = true, password, attributes } = storedOf(readUser(body));
    const hash = password === undefined ? undefined : await this.#hash(password, columns.email);
    const userId = this.#ctx.platform.newId();
    const locale = languageIn(attributes) ?? null;
    await this.#unique(() =>
      this.#ctx.db.tx(async tx => {
        await tx.sql`insert into users ${tx.sql.row({
          user_id: userId,
          env_id: realm.env_id,
          email_ci: columns.email.toLowerCase(),
          status: active ? 'active' : 'disabled',
          locale,
          ...columns,
        })}`;
        await tx.sql`insert into scim_users (user_id, attributes) values (${userId}, ${tx.sql.json(attributes)})`;
        if (hash !== undefined) await tx.sql`insert into passwords ${tx.sql.row({ user_id: userId, hash })}`;
        else if (active && isAddress(columns.email))
          await mailbox.welcome(
            tx,
            realm,
            { user_id: userId, email: columns.email, locale },
            await steps.issue(tx.sql, 'password_reset', userId),
          );
        await tx.emit('platform:auth:user:created', realm.env_id, { user_id: userId, env_id: realm.env_id });
        await tx.audit({ action: 'auth.user.provisioned', envId: realm.env_id, caller, resource: { type: 'user', id: userId } });
      }),
    );
    return this.get(realm, userId);
  }

  replace(call: ScimCall, id: string, body: unknown): Promise<ScimRecord> {
    const given = readUser(body);
    // Nobody is let in again because a client left something out.
    return this.#write(call, id, current => ({
      ...given,
      ...(given['active'] === undefined ? { active: current['active'] as boolean } : {}),
    }));
  }

  patch(call: ScimCall, id: string, body: unknown): Promise<ScimRecord> {
    return this.#write(call, id, current => readUser({ schemas: [USER], ...patched(current, body) }));
  }

  async remove({ caller, realm, ifMatch }: ScimCall, id: string): Promise<void> {
    const record = await this.get(realm, id);
    await this.#parts.removal.remove(record, caller, async tx => void (await this.#locked(tx, realm, id, ifMatch)));
  }

  async #write(call: ScimCall, id: string, next: (current: ScimDocument) => ScimDocument): Promise<ScimRecord> {
    const { caller, realm, ifMatch } = call;
    const { administrators, change, mailbox, recoveries, sessions, steps } = this.#parts;
    const seen = await this.get(realm, id);
    require(ifMatch, seen);
    const { password } = storedOf(next(writableOf(seen)));
    const hash = password === undefined ? undefined : await this.#hash(password, seen.email);
    let ended: string[] = [];
    const write = async (tx: IdentityTx) => {
      const before = await this.#locked(tx, realm, id, ifMatch);
      const { columns, active = before.status !== 'disabled', attributes } = storedOf(next(writableOf(before)));
      const opened = before.status === 'disabled' && active;
      const closed = before.status !== 'disabled' && !active;
      // What the directory says anew; else the person's own choice of a page stands.
      const told = languageIn(attributes);
      const said = told === languageIn(before.attributes ?? {}) ? undefined : told;
      if (closed && id === caller.userId) throw new ScimError(403, 'Nobody closes the own account. Ask another administrator.');
      if (closed) await administrators.requireOther(tx, before);
      const row = {
        ...columns,
        email_ci: columns.email.toLowerCase(),
        status: opened ? 'active' : closed ? 'disabled' : before.status,
        ...(said ? { locale: said } : {}),
      };
      const moved = row.email_ci !== before.email.toLowerCase();
      const [changed] = await tx.sql<object[]>`
        with told as (
          insert into scim_users as held (user_id, attributes) values (${id}, ${tx.sql.json(attributes)})
          on conflict (user_id) do update set attributes = excluded.attributes where held.attributes is distinct from excluded.attributes
            returning 1)
        update users set ${tx.sql.row(row)}, email_verified = email_verified and not ${moved}, version = version + 1, updated_at = now()
        where user_id = ${id} and (exists (select 1 from told) or (user_name, external_id, display_name, email, status) is distinct from
          (${row.user_name}, ${row.external_id}, ${row.display_name}, ${row.email}, ${row.status}))
        returning 1`;
      if (!changed) return;
      await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: id, env_id: realm.env_id });
      await tx.audit({
        action: closed ? 'auth.user.disabled' : opened ? 'auth.user.enabled' : 'auth.user.updated',
        envId: realm.env_id,
        caller,
        resource: { type: 'user', id },
      });
      const person = { user_id: id, email: row.email, locale: said ?? before.locale };
      // Links that went to the old address are void; its reader proves the new one.
      if (moved || closed) await steps.voidAll(tx.sql, id);
      if (moved || closed) await recoveries.cancelOf(tx, realm, id, moved ? 'address_changed' : 'account_closed');
      if (moved && active && hash === undefined && isAddress(row.email))
        await mailbox.confirmAddress(tx, realm, person, await steps.issue(tx.sql, 'email_verification', id));
      if (closed) ended = await sessions.endAll(tx, before, 'admin');
      if (
        opened &&
        isAddress(row.email) &&
        hash === undefined &&
        (await tx.sql<object[]>`select 1 from passwords where user_id = ${id}`).length === 0
      )
        await mailbox.welcome(tx, realm, person, await steps.issue(tx.sql, 'password_reset', id));
    };
    await this.#unique<unknown>(() =>
      hash === undefined ? this.#ctx.db.tx(write) : change.commit(realm, seen, hash, { action: 'auth.password.set' }, write),
    );
    await bumpPeople(this.#ctx, [id]);
    await sessions.mark(ended);
    return this.get(realm, id);
  }

  async #locked({ sql }: IdentityTx, realm: Realm, id: string, ifMatch: string | undefined): Promise<ScimRecord> {
    const [record] = await sql<
      ScimRecord[]
    >`select ${recordColumns(sql)} from users u left join scim_users s using (user_id) where u.user_id = ${id}
      and u.env_id = ${realm.env_id} for update of u`;
    if (!record) throw new ScimError(404, `No user ${id}.`);
    require(ifMatch, record);
    return record;
  }

  async #hash(password: string, email: string): Promise<string> {
    this.#parts.passwords.require(password, email);
    return this.#parts.passwords.hash(password);
  }

  async #unique<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      const { code, constraint_name: constraint } = cause as { code?: string; constraint_name?: string };
      if (code !== UNIQUE_VIOLATION) throw cause;
      throw new ScimError(
        409,
        constraint === 'users_user_name' ? 'Another user has this userName.' : 'Another user has this e-mail address.',
        'uniqueness',
      );
    }
  }
}

/** 412 where the client has seen another version (RFC 7644, 3.14). */
function require(ifMatch: string | undefined, record: ScimRecord): void {
  if (ifMatch !== undefined && !names(ifMatch, record)) throw new ScimError(412, 'The user has changed. Read it again.');
}

/** Weak comparison: the tag says which version, not which bytes. */
export function names(header: string, record: ScimRecord): boolean {
  const wanted = tagOf(record).slice(2);
  return header.trim() === '*' || header.split(',').some(each => each.trim().replace(/^W\//, '') === wanted);
}
