import { type Limit, type RawExchange, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { json, type Methods, visitOf } from '../door.ts';
import type { Guard } from '../session/guard.ts';
import type { SessionRecord } from '../session/session-store.ts';
import type { DelegationRecord } from './delegation-store.ts';
import type { DelegationRequest, Delegations } from './delegations.ts';
import type { Staff } from './staff.ts';

const STARTS_PER_MINUTE = 30;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const SCOPES = /^[\x21-\x7e]+( [\x21-\x7e]+)*$/;
const WRITE = ['delegate:write'];
const READ = ['delegate:read', 'delegate:write'];

/**
 * What the staff's browser may know and do of delegations: never a token (C13). Staff is who holds the scope in the customer's environment.
 */
export class DelegationEndpoints {
  readonly #ctx: Ctx;
  readonly #parts: { guard: Guard; staff: Staff; delegations: Delegations };
  readonly #limit: Limit;

  constructor(ctx: Ctx, parts: { guard: Guard; staff: Staff; delegations: Delegations }) {
    this.#ctx = ctx;
    this.#parts = parts;
    this.#limit = ctx.limit({ name: 'delegate', max: STARTS_PER_MINUTE, seconds: 60 });
  }

  readonly start: Methods = {
    POST: async exchange => {
      const { session, body } = await this.#asked(exchange, ['env_id', 'login_hint', 'scope', 'binding_message']);
      const request = this.#request(body);
      // An application of a tenant is at work in its own environment, whatever else its people may do elsewhere.
      if (session.app_instance_id !== SYSTEM.consoleAppId && request.env_id !== session.env_id)
        throw this.#ctx.problem('target_denied', { detail: 'This application acts in its own environment only.' });
      await this.#parts.staff.require(session, request.env_id, WRITE);
      // A customer is not asked twice because an answer was lost.
      return exchange.once(request, async () => {
        await this.#limit.require(session.user_id);
        const { delegation_id, state, expires_at, interval } = await this.#parts.delegations.start(session, request);
        const expires_in = Math.round((Date.parse(expires_at) - this.#ctx.clock.now().getTime()) / 1_000);
        return json({ delegation_id, state, expires_in, interval }, 202);
      });
    },
  };

  readonly poll: Methods = {
    POST: async exchange => {
      const { session, body } = await this.#asked(exchange, ['delegation_id']);
      const record = await this.#own(session, body['delegation_id'], WRITE);
      const { delegation_id, state, expires_at } = await this.#parts.delegations.poll(record);
      return json({ delegation_id, state, expires_at });
    },
  };

  readonly status: Methods = {
    GET: async exchange => {
      const session = await this.#parts.guard.session(visitOf(exchange));
      return json(this.#shown(await this.#own(session, new URL(exchange.request.url).searchParams.get('delegation_id'), READ)));
    },
  };

  /** Nothing is sent yet (doc2): the person at the desk tells the customer. */
  readonly sendLink: Methods = {
    POST: async exchange => {
      const { session, body } = await this.#asked(exchange, ['delegation_id', 'channel']);
      const channel = this.#text(body, 'channel', 40);
      const { delegation_id: id } = await this.#own(session, body['delegation_id'], WRITE);
      this.#ctx.log.info({ delegation_id: id, user_id: session.user_id, channel }, 'a link to the delegation was asked for');
      return json({ acknowledged: true }, 202);
    },
  };

  async #own(session: SessionRecord, id: unknown, scopes: readonly string[]): Promise<DelegationRecord> {
    const record = await this.#parts.delegations.own(session, id);
    await this.#parts.staff.require(session, record.customer.env_id, scopes);
    return record;
  }

  async #asked(
    exchange: RawExchange,
    members: readonly string[],
  ): Promise<{ session: SessionRecord; body: Readonly<Record<string, unknown>> }> {
    const session = await this.#parts.guard.mutation(visitOf(exchange), 'csrf');
    const body = await exchange.json({ of: 'any' });
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw this.#malformed(`Send an object of ${members.join(', ')}.`);
    const unknown = Object.keys(body).find(member => !members.includes(member));
    if (unknown !== undefined) throw this.#malformed(`${unknown.slice(0, 60)} is not a member; send ${members.join(', ')}.`);
    return { session, body: body as Record<string, unknown> };
  }

  #request(body: Readonly<Record<string, unknown>>): DelegationRequest {
    const envId = this.#text(body, 'env_id', 36);
    const hint = this.#text(body, 'login_hint', 320);
    const scope = this.#text(body, 'scope', 2_000);
    if (!envId || !ID.test(envId)) throw this.#malformed("env_id is the id of the customer's environment.");
    if (!hint) throw this.#malformed("login_hint is the customer's e-mail address or id.");
    if (scope !== undefined && !SCOPES.test(scope)) throw this.#malformed('scope is a list of scopes with one space between them.');
    return { env_id: envId, login_hint: hint, scope, binding_message: this.#text(body, 'binding_message', 128) };
  }

  #text(body: Readonly<Record<string, unknown>>, member: string, most: number): string | undefined {
    const value = body[member];
    if (value === undefined) return undefined;
    if (typeof value !== 'string' || value === '' || value.length > most)
      throw this.#malformed(`${member} is a text of at most ${most} characters.`);
    return value;
  }

  #shown(record: DelegationRecord) {
    const { delegation_id, state, customer, scope, jkt, token_expires_at, binding_message, expires_at, created_at, decided_at } = record;
    const present = this.#parts.delegations.hasToken(record);
    return {
      delegation_id,
      state,
      customer: { user_id: customer.user_id, env_id: customer.env_id },
      token: { present, scope: present ? scope : null, expires_at: present ? token_expires_at : null, jkt: present ? jkt : null },
      metadata: { login_hint: customer.login_hint, binding_message, expires_at, created_at, decided_at },
    };
  }

  #malformed(detail: string) {
    return this.#ctx.problem('malformed', { detail });
  }
}
