import { reply, type Sql } from '@platform/sdk';
import type { AuthorizationSteps, Interaction } from '../protocol/authorization-steps.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { BrowserSession } from '../sign-in/browser-session.ts';
import type { Headers } from '../sign-in/request-cookies.ts';
import type { Ctx } from '../context.ts';
import { methodsOf } from '../mfa/second-factor.ts';
import { isAddress } from '../people/people.ts';
import type { PersonWithPassword } from '../people/person.ts';
import { pageLanguage } from '../mail/page-language.ts';
import type { ProtocolTurn } from '../protocol/protocol-turn.ts';
import type { Realm } from '../realms.ts';
import type { Recoveries } from '../recovery/recoveries.ts';
import type { AccountMailbox } from './account-mail.ts';
import { deviceOf } from './device.ts';
import type { OAuthContext, StepTokens } from './step-tokens.ts';

interface Proven {
  readonly oauth: OAuthContext;
  readonly headers: Headers;
  /** How the person was recognised so far (RFC 8176). */
  readonly amr: readonly string[];
  /** When a provider that vouches for the person last saw them prove it, in seconds; here everybody does so now. */
  readonly provenAt?: number | undefined;
  /** The authorization of the context, where it was looked for already; null where there is none. */
  readonly begun?: Interaction | null;
}

interface Parts {
  readonly attempts: Attempts;
  readonly authorizations: AuthorizationSteps;
  readonly browser: BrowserSession;
  readonly mailbox: AccountMailbox;
  readonly recoveries: Recoveries;
  readonly steps: StepTokens;
}

/** A session that is not written yet. */
interface Began {
  readonly sid: string;
  readonly turn: ProtocolTurn;
  readonly headers: Headers;
  readonly amr: readonly string[];
  /** In seconds, or later than now for who proved it here. */
  readonly proven: number;
}
/** How long a device counts as known after a sign-in from it. */
export const KNOWN_DAYS = 90;

/** The way from a proven password to a session: each step that is still missing is the answer, in one order for every way of signing in. */
export class Arrival {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async proceed(realm: Realm, person: PersonWithPassword, { oauth, headers, amr, provenAt, begun }: Proven) {
    const { authorizations, steps } = this.#parts;
    const { sql } = this.#ctx.db;
    if (realm.verify_email && !person.email_verified && isAddress(person.email))
      return reply({ status: 'verification_required' as const, next: pathWith('/verify-email', oauth) }, {});
    const methods = amr.includes('mfa') ? [] : methodsOf(person);
    if (methods.length > 0) {
      const { token, stepId } = await steps.issue(sql, 'mfa', person.user_id, { amr, context: oauth });
      const next = pathWith('/mfa', oauth, { challenge_id: stepId, methods: methods.join(',') });
      return reply(
        { status: 'mfa_required' as const, mfa: { challenge_id: stepId, methods }, next },
        { headers: { 'set-cookie': steps.cookie('mfa', token) } },
      );
    }
    if (person.must_change_password) {
      const { token } = await steps.issue(sql, 'password_change', person.user_id, { amr, context: oauth });
      return reply(
        { status: 'password_change_required' as const, next: pathWith('/password-change', oauth) },
        { headers: { 'set-cookie': steps.cookie('password_change', token) } },
      );
    }
    const authorization = begun === undefined ? await authorizations.begun(realm, oauth) : begun;
    return this.open(realm, person, { headers, amr, provenAt, next: await authorizations.nextAfterSignIn(authorization, oauth) });
  }

  /**
   * A session for this browser, and where it goes on. It stands only if the account is still open and its password the one that was shown:
   * who changes or closes it at this moment ends every session, and this one must not slip through behind.
   */
  async open(realm: Realm, person: PersonWithPassword, { headers, amr, provenAt, next }: Omit<Proven, 'oauth'> & { next: string }) {
    const { browser, recoveries } = this.#parts;
    // Somebody else's word for the person is as old as they say, and counts for nothing where they do not.
    const proven = amr.every(means => means === 'fed') ? (provenAt ?? 0) : Number.MAX_SAFE_INTEGER;
    const opened = await browser.open(realm, person, headers, [...amr]);
    await this.#stand(realm, person, { ...opened, amr, headers, proven });
    // A person who signs in as usual needs no other way in, and may be its owner who knows of none.
    if (realm.account_recovery !== 'off') await this.#ctx.db.tx(tx => recoveries.cancelOf(tx, realm, person.user_id, 'signed_in'));
    return reply({ status: 'ok' as const, session_token_id: opened.tokenId, next }, { headers: { 'set-cookie': opened.cookie } });
  }

  /** Writes the session: in one statement from a device that the account knows, else with the mail to its owner in the same transaction. */
  async #stand(realm: Realm, person: PersonWithPassword, began: Began): Promise<void> {
    const { db } = this.#ctx;
    const { attempts, mailbox } = this.#parts;
    const { user_id: userId } = person;
    const device = deviceOf(began.headers['user-agent']);
    const signedIn = {
      action: 'auth.signed_in',
      envId: realm.env_id,
      resource: { type: 'user', id: userId },
      details: { session_id: began.sid, amr: [...began.amr] },
    };
    const known = (sql: Sql) =>
      sql`exists (select 1 from account_devices where user_id = ${userId} and device = ${device}
        and seen_at > now() - make_interval(days => ${KNOWN_DAYS}))`;
    const atOnce = await db.one<object>(
      tx => tx.audit(signedIn),
      (sql, announced) => standing(sql, person, { ...began, device, only: sql`and (last_sign_in_at is null or ${known(sql)})`, announced }),
    );
    if (atOnce.length > 0) return;
    await db.tx(async tx => {
      // A sign-in beside this one waits here, and sees then what this one wrote: a device is told of once.
      await tx.sql`select 1 from users where user_id = ${userId} for no key update`;
      const [unknown] = await tx.sql<
        object[]
      >`select 1 from users where user_id = ${userId} and last_sign_in_at is not null and not ${known(tx.sql)}`;
      await tx.audit(signedIn);
      const written = await standing(tx.sql, person, { ...began, device });
      if (written.length === 0)
        throw this.#ctx.problem('invalid_credentials', { detail: 'The account was changed a moment ago. Sign in again.' });
      if (unknown && (await attempts.mayMail('new_sign_in', attempts.account(realm.env_id, person.email))))
        await mailbox.newSignIn(tx, realm, person, device);
    });
  }
}

/** The session with what stands beside it, if the account stands; a definition of events is written with it. */
function standing(
  sql: Sql,
  { user_id: userId, password_since: since }: PersonWithPassword,
  {
    sid,
    device,
    headers,
    proven,
    turn,
    only = sql``,
    announced,
  }: Began & { readonly device: string; readonly only?: unknown; readonly announced?: (where: unknown) => unknown },
): PromiseLike<readonly object[]> {
  const stands = sql`exists (select 1 from standing)`;
  // All that is asked of the account stands in its row: where a change is under way, the row is looked at again when that has ended.
  return sql<object[]>`
    with standing as (
      update users set last_sign_in_at = now(), locale = coalesce(${pageLanguage(headers) ?? null}, locale)
      where user_id = ${userId} and status = 'active' and password_since::text is not distinct from ${since} ${only} returning 1),
    session_device as (
      insert into session_devices (sid, device, proven_at)
      select ${sid}, ${device}, to_timestamp(least(extract(epoch from now()), ${proven}::float)) from standing on conflict do nothing),
    account_device as (
      insert into account_devices as known (user_id, device, seen_at) select ${userId}::uuid, ${device}, now() from standing
      on conflict (user_id, device) do update set seen_at = excluded.seen_at where known.seen_at < excluded.seen_at - interval '1 day'),
    ${turn.definitions(sql, stands)}
    ${announced ? sql`, ${announced(stands)}` : sql``}
    select 1 from standing`;
}

/** A page of this origin that carries the context on (SGN-028). */
export function pathWith(path: string, oauth: OAuthContext, more: Readonly<Record<string, string>> = {}): string {
  const carried = Object.entries({ ...oauth, ...more }).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return carried.length > 0 ? `${path}?${new URLSearchParams(carried)}` : path;
}
