import { isProblem, type SealedBox } from '@platform/sdk';
import type { AuthHosts } from '../apps/auth-hosts.ts';
import type { Ctx } from '../context.ts';
import type { DelegatedToken } from '../proxy/delegated-tokens.ts';
import { claimsOf, type Issuer, isRefusal, type TokenAnswer, type TokenRefusal } from '../issuer.ts';
import type { SessionRecord } from '../session/session-store.ts';
import type { Sessions } from '../session/sessions.ts';
import { type DelegationRecord, DelegationStore, type Outcome } from './delegation-store.ts';
import { DELEGATOR, type Delegator } from './delegator.ts';
import { DpopKey } from './dpop-key.ts';

export interface DelegationRequest {
  readonly env_id: string;
  readonly login_hint: string;
  readonly scope?: string | undefined;
  readonly binding_message?: string | undefined;
}
interface Parts {
  readonly delegator: Delegator;
  readonly hosts: AuthHosts;
  readonly issuer: Issuer;
  readonly sessions: Sessions;
}

const CIBA = 'urn:openid:params:grant-type:ciba';
const MAX_POLLS = 60;
const AT_ONCE = 100;
const SLOWER_S = 5;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const WAITING = new Set(['authorization_pending', 'slow_down']);
const OUTCOMES: Readonly<Record<string, Outcome>> = { access_denied: 'denied', expired_token: 'expired' };
/** Every gateway process hears here how a delegation ended; the one with the stream tells the page. */
export const DECIDED_CHANNEL = 'platform:bff:delegation:decided';

/**
 * Acting for a customer who allows it at the own identity service: OpenID CIBA, polled, with a key that the token is bound to (G-BFF-07).
 */
export class Delegations {
  readonly #ctx: Ctx;
  readonly #parts: Parts;
  readonly #box: SealedBox;
  readonly #store: DelegationStore;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#box = ctx.keys.sessions;
    this.#store = new DelegationStore(ctx);
  }

  /** Asks the customer. Who acts is the person of the session, whatever the request says (GWY-037). */
  async start(session: SessionRecord, request: DelegationRequest): Promise<DelegationRecord> {
    const { delegator, issuer, sessions } = this.#parts;
    const host = await this.#hostOf(request.env_id);
    const scope = ['openid', ...(request.scope ?? '').split(' ').filter(name => name !== '' && name !== 'openid')].join(' ');
    const answer = await issuer.backchannel(
      host,
      {
        client_id: await delegator.clientId(),
        scope,
        login_hint: request.login_hint,
        actor_token: await sessions.accessToken(session),
        ...(request.binding_message === undefined ? {} : { binding_message: request.binding_message }),
      },
      { as: DELEGATOR },
    );
    if (isRefusal(answer)) throw this.#notBegun(answer);
    const id = this.#ctx.platform.newId();
    const dpop = await DpopKey.make();
    const now = this.#now();
    const record: DelegationRecord = {
      delegation_id: id,
      staff_session_id: session.session_id,
      staff_session_hash: session.session_id_hash,
      staff_user_id: session.user_id,
      customer: { env_id: request.env_id, login_hint: request.login_hint, user_id: null },
      issuer_host: host,
      auth_req_enc: this.#box.seal(purpose(id, 'request'), answer.auth_req_id),
      dpop_key_enc: this.#box.seal(purpose(id, 'key'), dpop.exported),
      jkt: await dpop.thumbprint(),
      token_enc: null,
      token_expires_at: null,
      scope,
      binding_message: request.binding_message ?? null,
      interval: answer.interval,
      polls: 0,
      expires_at: iso(now + answer.expires_in * 1_000),
      state: 'started',
      created_at: iso(now),
      decided_at: null,
      version: 1,
    };
    await this.#store.insert(record);
    this.#ctx.log.info({ delegation_id: id, user_id: session.user_id, env_id: request.env_id }, 'delegation started');
    return record;
  }

  /** A delegation of this very session; anybody else's is not there. */
  async own(session: SessionRecord, id: unknown): Promise<DelegationRecord> {
    const record = typeof id === 'string' && ID.test(id) ? await this.#store.read(id) : undefined;
    if (record?.staff_session_id !== session.session_id)
      throw this.#ctx.problem('delegation_not_found', {
        detail: 'No delegation with this id was started in this session, or it is long over.',
      });
    return record;
  }

  /** Asks the identity service unless somebody has within the interval. A transport failure decides nothing and is thrown. */
  async poll(record: DelegationRecord): Promise<DelegationRecord> {
    if (record.state !== 'started') return record;
    if (this.#now() >= Date.parse(record.expires_at)) return this.#end(record, 'expired');
    if (!(await this.#store.claim(record))) return record;
    const asked = { ...record, polls: record.polls + 1 };
    if (asked.polls > MAX_POLLS) return this.#end(record, 'expired');
    const answer = await this.#ask(record).catch(async error => {
      await this.#write(asked);
      throw error;
    });
    if (!isRefusal(answer)) return this.#approve(asked, answer);
    if (!WAITING.has(answer.refused)) return this.#end(asked, OUTCOMES[answer.refused] ?? 'failed', answer);
    if (asked.polls >= MAX_POLLS) return this.#end(asked, 'expired');
    const next = answer.refused === 'slow_down' ? { ...asked, interval: record.interval + SLOWER_S } : asked;
    if (next !== asked) await this.#store.putOff(next);
    return this.#write(next);
  }

  /** The poll task: every delegation that waits, whichever process began it (GWY-021). */
  async pollDue(): Promise<void> {
    await Promise.all(
      (await this.#store.due(AT_ONCE)).map(async id => {
        const record = await this.#store.read(id);
        if (record?.state !== 'started') return this.#store.settle(id);
        await this.poll(record).catch(error =>
          this.#ctx.log.warn({ delegation_id: id, err: error }, 'a delegation could not be asked about; trying on'),
        );
      }),
    );
  }

  /** The customer's token for a call, and nothing in its place (GWY-080). */
  async use(session: SessionRecord, id: string): Promise<{ readonly bearer: DelegatedToken; readonly envId: string }> {
    const record = await this.own(session, id);
    const token = this.hasToken(record)
      ? this.#box.open(purpose(record.delegation_id, 'token'), record.token_enc as NonNullable<typeof record.token_enc>)
      : undefined;
    const key = token === undefined ? undefined : this.#box.open(purpose(record.delegation_id, 'key'), record.dpop_key_enc);
    if (token === undefined || key === undefined)
      throw this.#ctx.problem('delegation_not_approved', {
        detail: record.state === 'started' ? 'The customer has not decided yet.' : 'The delegation is over; start another.',
      });
    const held = DpopKey.from(key);
    return {
      bearer: { token, as: undefined, prove: (method, url) => held.proof(this.#ctx, { method, url, token }) },
      envId: record.customer.env_id,
    };
  }

  /** Whether there is a token that is still good. */
  hasToken({ state, token_enc: token, token_expires_at: until }: DelegationRecord): boolean {
    return state === 'approved' && token !== null && until !== null && Date.parse(until) > this.#now();
  }

  async #ask(record: DelegationRecord): Promise<TokenAnswer | TokenRefusal> {
    const { delegator, issuer } = this.#parts;
    const id = record.delegation_id;
    const request = this.#box.open(purpose(id, 'request'), record.auth_req_enc);
    const key = this.#box.open(purpose(id, 'key'), record.dpop_key_enc);
    // Sealed with a key that nobody has any more.
    if (request === undefined || key === undefined) return { refused: 'unreadable', status: 500, description: undefined };
    const proof = await DpopKey.from(key).proof(this.#ctx, { url: issuer.tokenEndpoint(record.issuer_host) });
    return issuer.token(
      record.issuer_host,
      { grant_type: CIBA, client_id: await delegator.clientId(), auth_req_id: request },
      { as: DELEGATOR, proof },
    );
  }

  #approve(record: DelegationRecord, answer: TokenAnswer): Promise<DelegationRecord> {
    const { sub } = claimsOf(answer.access_token) ?? {};
    const until = iso(this.#now() + answer.expires_in * 1_000);
    const token = this.#box.seal(purpose(record.delegation_id, 'token'), answer.access_token);
    const customer = { ...record.customer, user_id: typeof sub === 'string' ? sub : null };
    return this.#end({ ...record, customer, token_enc: token, token_expires_at: until, scope: answer.scope ?? record.scope }, 'approved');
  }

  /** Of all who see the end at once one writes it, and that one tells (GWY-023). */
  async #end(record: DelegationRecord, state: Outcome, refusal?: TokenRefusal): Promise<DelegationRecord> {
    const ended: DelegationRecord = { ...record, state, decided_at: iso(this.#now()), version: record.version + 1 };
    const outcome = await this.#store.replace(ended);
    if (outcome !== 'written') return (await this.#store.read(record.delegation_id)) ?? ended;
    const { delegation_id: id, staff_session_hash: session } = ended;
    await this.#store.settle(id);
    this.#ctx.log.info({ delegation_id: id, state, error: refusal?.refused }, 'delegation ended');
    // A page that misses this asks for the status.
    await this.#ctx.kv
      .call('PUBLISH', DECIDED_CHANNEL, JSON.stringify({ session, delegation_id: id, state, env_id: ended.customer.env_id }))
      .catch(error => this.#ctx.log.warn({ delegation_id: id, err: error }, 'end of a delegation not broadcast'));
    return ended;
  }

  async #write(record: DelegationRecord): Promise<DelegationRecord> {
    const next = { ...record, version: record.version + 1 };
    return (await this.#store.replace(next)) === 'written' ? next : ((await this.#store.read(record.delegation_id)) ?? next);
  }

  async #hostOf(envId: string): Promise<string> {
    try {
      return await this.#parts.hosts.of(envId);
    } catch (cause) {
      if (isProblem(cause) && cause.status < 500) throw this.#ctx.problem('target_denied', { cause });
      throw this.#ctx.problem('not_ready', { cause, detail: 'The environment is not known yet.', headers: { 'retry-after': '2' } });
    }
  }

  #notBegun({ refused, status, description }: TokenRefusal) {
    const cause = new Error(`bc-authorize refused: ${refused} ${description ?? ''}`);
    if (refused === 'unknown_user_id')
      return this.#ctx.problem('customer_not_found', { detail: 'Nobody in this environment has this e-mail address or id.', cause });
    if (refused === 'invalid_client') return this.#parts.delegator.unavailable(refused);
    if (status === 403 || refused === 'access_denied' || refused === 'unauthorized_client')
      return this.#ctx.problem('delegation_refused', { detail: 'Nobody can act for people of this environment.', cause });
    return this.#ctx.problem('malformed', { detail: (description ?? refused).slice(0, 300), cause });
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}

const purpose = (id: string, part: 'request' | 'key' | 'token'): string => `delegation ${id} ${part}`;
const iso = (ms: number): string => new Date(ms).toISOString();
