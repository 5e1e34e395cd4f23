import { reply } from '@platform/sdk';
import type { AuthorizationSteps, Interaction } from '../protocol/authorization-steps.ts';
import type { BrowserSession, Headers } from '../sign-in/browser-session.ts';
import type { Ctx } from '../context.ts';
import { methodsOf } from '../mfa/second-factor.ts';
import { isAddress, type PersonWithPassword } from '../people/people.ts';
import { pageLanguage } from '../mail/page-language.ts';
import type { Realm } from '../realms.ts';
import type { Recoveries } from '../recovery/recoveries.ts';
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

/** The way from a proven password to a session: each step that is still missing is the answer, in one order for every way of signing in. */
export class Arrival {
  readonly #ctx: Ctx;
  readonly #parts: { authorizations: AuthorizationSteps; browser: BrowserSession; recoveries: Recoveries; steps: StepTokens };

  constructor(ctx: Ctx, parts: { authorizations: AuthorizationSteps; browser: BrowserSession; recoveries: Recoveries; steps: StepTokens }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async proceed(realm: Realm, person: PersonWithPassword, { oauth, headers, amr, provenAt, begun }: Proven) {
    const { authorizations, steps } = this.#parts;
    const { sql } = this.#ctx.db;
    if (realm.verify_email && !person.email_verified && isAddress(person.email)) return reply({ status: 'verification_required' as const, next: pathWith('/verify-email', oauth) }, {});
    const methods = amr.includes('mfa') ? [] : methodsOf(person);
    if (methods.length > 0) {
      const { token, stepId } = await steps.issue(sql, 'mfa', person.user_id, { amr, context: oauth });
      const next = pathWith('/mfa', oauth, { challenge_id: stepId, methods: methods.join(',') });
      return reply({ status: 'mfa_required' as const, mfa: { challenge_id: stepId, methods }, next }, { headers: { 'set-cookie': steps.cookie('mfa', token) } });
    }
    if (person.must_change_password) {
      const { token } = await steps.issue(sql, 'password_change', person.user_id, { amr, context: oauth });
      return reply({ status: 'password_change_required' as const, next: pathWith('/password-change', oauth) }, { headers: { 'set-cookie': steps.cookie('password_change', token) } });
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
    const { tokenId, cookie, sid, turn } = await browser.open(realm, person, headers, [...amr]);
    const standing = await this.#ctx.db.one<object>(
      tx => tx.audit({ action: 'auth.signed_in', envId: realm.env_id, resource: { type: 'user', id: person.user_id }, details: { session_id: sid, amr: [...amr] } }),
      (sql, announced) => {
        const stands = sql`exists (select 1 from standing)`;
        // All that is asked of the account stands in its row: where a change is under way, the row is looked at again when that has ended.
        return sql`
          with standing as (
            update users set last_sign_in_at = now(), locale = coalesce(${pageLanguage(headers) ?? null}, locale)
            where user_id = ${person.user_id} and status = 'active' and password_since::text is not distinct from ${person.password_since} returning 1),
          device as (
            insert into session_devices (sid, device, proven_at)
            select ${sid}, ${deviceOf(headers['user-agent'])}, to_timestamp(least(extract(epoch from now()), ${proven}::float)) from standing on conflict do nothing),
          ${turn.definitions(sql, stands)},
          ${announced(stands)}
          select 1 from standing`;
      },
    );
    if (standing.length === 0) throw this.#ctx.problem('invalid_credentials', { detail: 'The account was changed a moment ago. Sign in again.' });
    // Whoever signs in as usual needs no other way in, and may be its owner who knows of none.
    if (realm.account_recovery !== 'off') await this.#ctx.db.tx(tx => recoveries.cancelOf(tx, realm, person.user_id, 'signed_in'));
    return reply({ status: 'ok' as const, session_token_id: tokenId, next }, { headers: { 'set-cookie': cookie } });
  }
}

/** A page of this origin that carries the context on (SGN-028). */
export function pathWith(path: string, oauth: OAuthContext, more: Readonly<Record<string, string>> = {}): string {
  const carried = Object.entries({ ...oauth, ...more }).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return carried.length > 0 ? `${path}?${new URLSearchParams(carried)}` : path;
}
