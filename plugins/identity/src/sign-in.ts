import { createHash, randomBytes } from 'node:crypto';
import { type RequestOf, reply } from '@platform/sdk';
import type { Attempts } from './attempts.ts';
import type { Contract, Ctx } from './context.ts';
import type { PageGuard } from './page-guard.ts';
import { HashingBusy, type Passwords } from './passwords.ts';
import type { People, Person } from './people.ts';
import { INTERACTION_COOKIE, type Protocol } from './protocol.ts';
import type { Realm, Realms } from './realms.ts';
import type { Sessions } from './sessions.ts';

const STEP_COOKIE = '__Host-platform-step';
const STEP_S = 600;
type Headers = Readonly<Record<string, string | undefined>>;

export interface SignInParts {
  readonly attempts: Attempts;
  readonly guard: PageGuard;
  readonly passwords: Passwords;
  readonly people: People;
  readonly protocol: Protocol;
  readonly realms: Realms;
  readonly sessions: Sessions;
}

/** The password steps of the hosted pages. They finish an authorization that the protocol began; none of them mints a code (doc1, sign-in). */
export class SignIn {
  readonly #ctx: Ctx;
  readonly #parts: SignInParts;

  constructor(ctx: Ctx, parts: SignInParts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  async signIn({ body, headers, hostname, ip, correlationId: _ }: RequestOf<Contract, 'signIn'>) {
    const { attempts, guard, passwords, people, realms } = this.#parts;
    const realm = await realms.onHost(hostname);
    guard.require(realm, headers, body.oauth.uid);
    const account = `${realm.env_id}:${hashOf(body.email.trim().toLowerCase()).subarray(0, 12).toString('base64url')}`;
    await attempts.admit(account, ip);
    const person = await people.byEmail(realm.env_id, body.email);
    const right = await this.#hashing(() => passwords.verify(person?.hash, body.password));
    if (!person || !right || person.status !== 'active') {
      await attempts.failed(account);
      throw this.#ctx.problem('invalid_credentials', { detail: 'Check the e-mail address and the password.' });
    }
    const interaction = await this.#interaction(realm, headers, body.oauth.uid);
    await attempts.succeeded(account);
    if (!person.must_change_password) return this.#finish(realm, interaction, person);
    const token = await this.#step(person, interaction.uid);
    const next = `/password-change?${new URLSearchParams(Object.entries(body.oauth).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))}`;
    return reply({ status: 'password_change_required' as const, next }, { headers: { 'set-cookie': stepCookie(token, STEP_S) } });
  }

  async changePassword({ body, headers, hostname }: RequestOf<Contract, 'changePassword'>) {
    const { guard, passwords, people, realms, sessions } = this.#parts;
    const realm = await realms.onHost(hostname);
    guard.require(realm, headers, body.oauth.uid);
    const token = cookieOf(headers, STEP_COOKIE);
    if (!token) throw this.#ctx.problem('token_expired', { detail: 'Sign in again with your old password.' });
    const [pending] = await this.#ctx.db.sql<{ user_id: string; uid: string }[]>`
      select user_id, uid from step_tokens where token_hash = ${hashOf(token)} and kind = 'password_change' and used_at is null and expires_at > now()`;
    const person = pending && (await people.byId(pending.user_id));
    if (!person) throw this.#ctx.problem('token_expired', { detail: 'Sign in again with your old password.' });
    const weakness = passwords.weakness(body.password, person.email);
    if (weakness) throw this.#ctx.problem('weak_password', { detail: weakness, extra: { errors: [{ pointer: '/password', code: 'weak', message: weakness }] } });
    const old = await people.byEmail(realm.env_id, person.email);
    if (await this.#hashing(() => passwords.verify(old?.hash, body.password))) {
      throw this.#ctx.problem('weak_password', { detail: 'Choose a password you have not used here.', extra: { errors: [{ pointer: '/password', code: 'reused', message: 'is the old one' }] } });
    }
    const interaction = await this.#interaction(realm, headers, pending.uid);
    const hash = await this.#hashing(() => passwords.hash(body.password));
    await this.#ctx.db.tx(async tx => {
      // Whoever sets the mark has used the step; two tabs cannot both (H-13).
      const used = await tx.sql<object[]>`update step_tokens set used_at = now() where token_hash = ${hashOf(token)} and used_at is null returning 1`;
      if (used.length === 0) throw this.#ctx.problem('token_expired');
      await tx.sql`update passwords set hash = ${hash}, changed_at = now() where user_id = ${person.user_id}`;
      await tx.sql`update users set must_change_password = false where user_id = ${person.user_id}`;
      await sessions.endAllIn(tx, person, 'password_change');
      await tx.emit('platform:auth:user:updated', realm.env_id, { user_id: person.user_id, env_id: realm.env_id });
      await tx.audit({ action: 'auth.password.changed', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
    });
    const answer = await this.#finish(realm, interaction, person);
    return reply(answer, { headers: { 'set-cookie': stepCookie('', 0) } });
  }

  async signOut({ headers, hostname }: RequestOf<Contract, 'signOut'>): Promise<void> {
    const { guard, realms, sessions } = this.#parts;
    const realm = await realms.onHost(hostname);
    guard.require(realm, headers, undefined);
    await sessions.endOf(realm, headers);
  }

  /** The authorization this page belongs to: the uid of its context must be the one in the browser's own cookie, or another's step would be finished. */
  async #interaction(realm: Realm, headers: Headers, uid: string | undefined) {
    const invalid = (detail: string) => this.#ctx.problem('step_invalid', { detail });
    if (!uid || cookieOf(headers, INTERACTION_COOKIE) !== uid) throw invalid('Start again from the application you came from.');
    const interaction = await this.#parts.protocol.provider(realm).Interaction.find(uid);
    if (!interaction) throw this.#ctx.problem('token_expired', { detail: 'Start again from the application you came from.' });
    return interaction;
  }

  async #finish(realm: Realm, interaction: Awaited<ReturnType<SignIn['#interactionType']>>, person: Person) {
    interaction.result = { login: { accountId: person.user_id, amr: ['pwd'], remember: true } };
    await interaction.save(Math.max(1, interaction.exp - Math.floor(Date.now() / 1_000)));
    await this.#ctx.db.tx(async tx => {
      await tx.sql`update users set last_sign_in_at = now() where user_id = ${person.user_id}`;
      await tx.audit({ action: 'auth.signed_in', envId: realm.env_id, resource: { type: 'user', id: person.user_id } });
    });
    const back = new URL(interaction.returnTo);
    return { status: 'ok' as const, session_token_id: this.#parts.guard.tokenId(interaction.uid), next: `${back.pathname}${back.search}` };
  }

  /** @internal only for its type */
  #interactionType() {
    return this.#interaction({} as Realm, {}, undefined);
  }

  async #step(person: Person, uid: string): Promise<string> {
    const token = randomBytes(32).toString('base64url');
    const expires = new Date(this.#ctx.clock.now().getTime() + STEP_S * 1_000).toISOString();
    await this.#ctx.db.sql`insert into step_tokens (token_hash, kind, user_id, uid, expires_at) values (${hashOf(token)}, 'password_change', ${person.user_id}, ${uid}, ${expires})`;
    return token;
  }

  async #hashing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof HashingBusy) throw this.#ctx.problem('rate_limited', { detail: 'Many people are signing in. Try again in a moment.', headers: { 'retry-after': '2' } });
      throw error;
    }
  }
}

const hashOf = (value: string) => createHash('sha256').update(value).digest();
const stepCookie = (value: string, seconds: number) => `${STEP_COOKIE}=${value}; Path=/; HttpOnly; Secure; SameSite=Strict; Max-Age=${seconds}`;

export function cookieOf(headers: Headers, name: string): string | undefined {
  for (const pair of (headers['cookie'] ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}
