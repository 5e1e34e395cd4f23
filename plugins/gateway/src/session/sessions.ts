import { randomBytes } from 'node:crypto';
import { type SealedBox, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { claimsOf, type Issuer, isRefusal, type TokenAnswer } from '../issuer.ts';
import { pushKey } from './push-key.ts';
import { hashOf, type SessionRecord, SessionStore, sessionKey } from './session-store.ts';

interface Tokens {
  readonly access: string;
  readonly refresh: string | undefined;
  readonly id: string | undefined;
  readonly expires_at: number;
}
type Of =
  | 'user_id'
  | 'email'
  | 'display_name'
  | 'app_instance_id'
  | 'client_id'
  | 'issuer_host'
  | 'env_id'
  | 'auth_env'
  | 'sid'
  | 'user_agent';
export interface NewSession extends Pick<SessionRecord, Of> {
  readonly tokens: TokenAnswer;
  readonly ip: string;
}

const TOUCH_MS = 60_000;
const REFRESH_BEFORE_MS = 30_000;
const WRITE_TRIES = 8;
const COOKIE = /^[A-Za-z0-9_-]{43}$/;
/** Every gateway process hears here which session ended (H-10). */
export const ENDED_CHANNEL = 'platform:bff:session:ended';

/** Sessions of browsers. Life: opened → (touched | refreshed)* → ended; tokens leave this class only towards backends. */
export class Sessions {
  readonly store: SessionStore;
  readonly #ctx: Ctx;
  readonly #issuer: Issuer;
  readonly #box: SealedBox;
  readonly #refreshing = new Map<string, Promise<SessionRecord>>();

  constructor(ctx: Ctx, issuer: Issuer) {
    this.#ctx = ctx;
    this.#issuer = issuer;
    this.#box = ctx.keys.sessions;
    this.store = new SessionStore(ctx);
  }

  /** A new session under a cookie nobody has seen before. */
  async open({ tokens, ip, ...given }: NewSession): Promise<{ cookie: string; record: SessionRecord }> {
    const cookie = randomBytes(32).toString('base64url');
    const hash = hashOf(cookie);
    const now = this.#now();
    const record: SessionRecord = {
      ...given,
      session_id: this.#ctx.platform.newId(),
      session_id_hash: hash,
      scopes: scopesOf(tokens),
      csrf_token: randomBytes(32).toString('base64url'),
      tokens_enc: this.#seal(hash, this.#tokensOf(tokens, undefined)),
      created_at: iso(now),
      last_seen: iso(now),
      idle_expires_at: iso(now + this.#ctx.config.idleTtlS * 1_000),
      absolute_expires_at: iso(now + this.#ctx.config.absoluteTtlS * 1_000),
      user_agent: given.user_agent.slice(0, 300),
      ip_prefix: prefixOf(ip),
      version: 1,
    };
    await this.store.insert(record);
    return { cookie, record };
  }

  /** The live session of a cookie; marks it as used at most once a minute. */
  async find(cookie: string | undefined): Promise<SessionRecord | undefined> {
    if (!cookie || !COOKIE.test(cookie)) return undefined;
    const record = await this.store.read(hashOf(cookie));
    if (!record || this.#open(record) === undefined) return undefined;
    return this.#now() - Date.parse(record.last_seen) < TOUCH_MS ? record : this.#touch(record);
  }

  /** An access token with at least half a minute left (GWY-055). */
  async accessToken(record: SessionRecord): Promise<string> {
    const tokens = this.#open(record);
    if (tokens && tokens.expires_at - this.#now() > REFRESH_BEFORE_MS) return tokens.access;
    return (this.#open(await this.refresh(record)) as Tokens).access;
  }

  /** Rotates the tokens: one call to the identity service, however many requests of however many processes need it. */
  refresh(record: SessionRecord): Promise<SessionRecord> {
    const hash = record.session_id_hash;
    let running = this.#refreshing.get(hash);
    if (!running) {
      running = this.#refreshOnce(record).finally(() => this.#refreshing.delete(hash));
      this.#refreshing.set(hash, running);
    }
    return running;
  }

  /** Removes the session, revokes its refresh token unless the identity service knows, and tells every process. */
  async end(record: SessionRecord, reason: string, options: { revoke: boolean }): Promise<void> {
    if (!(await this.store.remove(record))) return;
    this.#ctx.log.info({ session_id: record.session_id, user_id: record.user_id, reason }, 'session ended');
    await this.#ctx.kv
      .call('DEL', pushKey(record.session_id_hash))
      .catch(error => this.#ctx.log.warn({ err: error }, 'devices of a session not forgotten; they run out with its time'));
    // A process that misses this finds the session gone at the next heartbeat.
    await this.#ctx.kv
      .call('PUBLISH', ENDED_CHANNEL, JSON.stringify({ hash: record.session_id_hash, session_id: record.session_id, reason }))
      .catch(error => this.#ctx.log.warn({ err: error }, 'end of a session not broadcast'));
    const refresh = this.#open(record)?.refresh;
    if (options.revoke && refresh) await this.#issuer.revoke(record.issuer_host, record.client_id, refresh);
  }

  /**
   * The person leaves: this session, or all of theirs, and at the console the sign-in session it came from too, or the next sign-in would
   * ask for nothing (F-11).
   */
  async signOut(record: SessionRecord, { everywhere }: { everywhere: boolean }): Promise<void> {
    const idToken = this.#open(record)?.id;
    const others = everywhere ? (await this.store.ofUser(record.user_id)).filter(({ session_id }) => session_id !== record.session_id) : [];
    await Promise.all([record, ...others].map(session => this.end(session, 'sign_out', { revoke: true })));
    if (idToken === undefined || (!everywhere && record.app_instance_id !== SYSTEM.consoleAppId)) return;
    await this.#issuer.endSession(record.issuer_host, { clientId: record.client_id, idToken, sid: record.sid, everywhere });
  }

  expiresAt(record: SessionRecord): string {
    return record.idle_expires_at < record.absolute_expires_at ? record.idle_expires_at : record.absolute_expires_at;
  }

  async #refreshOnce(seen: SessionRecord): Promise<SessionRecord> {
    const hash = seen.session_id_hash;
    const known = this.#open(seen)?.access;
    const current = async () => {
      const record = await this.store.read(hash);
      if (!record || this.#open(record) === undefined) throw this.#ctx.problem('session_required', { detail: 'The session has ended.' });
      return record;
    };
    const renewed = (record: SessionRecord) => this.#open(record)?.access !== known;
    const refreshed = await this.#ctx.lock(`refresh:${hash}`, { ttl: '10s', wait: '30s' }, async () => {
      const record = await current();
      return renewed(record) ? record : this.#rotate(record);
    });
    if (!refreshed.held)
      throw this.#ctx.problem('identity_unavailable', {
        detail: 'The tokens are being renewed for too long.',
        headers: { 'retry-after': '2' },
      });
    return refreshed.value;
  }

  async #rotate(record: SessionRecord): Promise<SessionRecord> {
    const held = this.#open(record) as Tokens;
    if (!held.refresh) return this.#lost(record, 'no_refresh_token');
    const answer = await this.#issuer.token(record.issuer_host, {
      grant_type: 'refresh_token',
      client_id: record.client_id,
      refresh_token: held.refresh,
    });
    if (isRefusal(answer)) {
      if (answer.refused === 'invalid_grant') return this.#lost(record, 'refresh_refused');
      throw this.#ctx.problem('identity_unavailable', {
        cause: new Error(`refresh refused: ${answer.refused} ${answer.description ?? ''}`),
      });
    }
    const tokens = this.#tokensOf(answer, held);
    const scopes = scopesOf(answer);
    // One write replaces the pair: nobody ever reads a half of it (GWY-056).
    const written = await this.#write(record, latest => ({
      ...latest,
      scopes: scopes.length > 0 ? scopes : latest.scopes,
      tokens_enc: this.#seal(latest.session_id_hash, tokens),
    }));
    if (written) return written;
    // Signed out meanwhile: what was just issued must not outlive the session.
    if (tokens.refresh) await this.#issuer.revoke(record.issuer_host, record.client_id, tokens.refresh);
    throw this.#ctx.problem('session_required', { detail: 'The session has ended.' });
  }

  async #lost(record: SessionRecord, reason: string): Promise<never> {
    await this.end(record, reason, { revoke: false });
    throw this.#ctx.problem('session_required', { detail: 'The session has ended.' });
  }

  /** Marks a use, once: who loses to another write was marked by it, or is the next time. */
  async #touch(record: SessionRecord): Promise<SessionRecord | undefined> {
    const now = this.#now();
    const next: SessionRecord = {
      ...record,
      last_seen: iso(now),
      idle_expires_at: iso(now + this.#ctx.config.idleTtlS * 1_000),
      // Written again with the current key (GWY-085).
      ...(this.#box.isStale(record.tokens_enc) ? { tokens_enc: this.#seal(record.session_id_hash, this.#open(record) as Tokens) } : {}),
      version: record.version + 1,
    };
    const outcome = await this.store.replace(next);
    if (outcome === 'written') return next;
    return outcome === 'gone' ? undefined : this.store.read(record.session_id_hash);
  }

  /** Applies a change to the newest version; `undefined` when the session is gone. */
  async #write(record: SessionRecord, change: (latest: SessionRecord) => SessionRecord): Promise<SessionRecord | undefined> {
    let latest: SessionRecord | undefined = record;
    for (let tries = 0; tries < WRITE_TRIES; tries++) {
      if (!latest || this.#open(latest) === undefined) return undefined;
      const next = { ...change(latest), version: latest.version + 1 };
      const outcome = await this.store.replace(next);
      if (outcome === 'written') return next;
      if (outcome === 'gone') return undefined;
      latest = await this.store.read(record.session_id_hash);
    }
    throw this.#ctx.problem('not_ready', { detail: 'The session is being written by too many requests.', headers: { 'retry-after': '1' } });
  }

  #tokensOf(answer: TokenAnswer, before: Tokens | undefined): Tokens {
    return {
      access: answer.access_token,
      refresh: answer.refresh_token ?? before?.refresh,
      id: answer.id_token ?? before?.id,
      expires_at: this.#now() + answer.expires_in * 1_000,
    };
  }

  #seal(hash: string, tokens: Tokens) {
    return this.#box.seal(sessionKey(hash), JSON.stringify(tokens));
  }

  #open(record: SessionRecord): Tokens | undefined {
    const text = this.#box.open(sessionKey(record.session_id_hash), record.tokens_enc);
    return text === undefined ? undefined : (JSON.parse(text) as Tokens);
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}

const iso = (ms: number): string => new Date(ms).toISOString();

function scopesOf(tokens: TokenAnswer): readonly string[] {
  const claimed = claimsOf(tokens.access_token)?.['scope'];
  return (typeof claimed === 'string' ? claimed : (tokens.scope ?? '')).split(' ').filter(Boolean);
}

/** The network a session was opened from, not the machine. */
function prefixOf(ip: string): string {
  return ip.includes(':') ? `${ip.split(':').slice(0, 3).join(':')}::/48` : `${ip.split('.').slice(0, 3).join('.')}.0/24`;
}
