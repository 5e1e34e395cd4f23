import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { type Issuer, isRefusal, type TokenAnswer } from '../issuer.ts';

/** A token and the moment it ends, in milliseconds. */
export interface Held {
  readonly token: string;
  readonly until: number;
}

export const DELEGATOR = 'delegator';
const CLIENT = 'bff-delegator';
const SCOPES = ['delegate:read', 'scim:read', 'scim:write', 'sys:instances:read'].map(scope => `platform:${scope}`).join(' ');
const RETRIES = 30;
const RETRY_MS = 3_000;
const MARGIN_MS = 30_000;

/**
 * The workload that acts for people in environments that are not its own. It is registered as a client when the gateway starts (doc2,
 * gateway 6): a credential file tells that it was, and a failure is tried again 30 times. Its certificate is its only secret (RFC 8705).
 * Life: starting → registered, or starting → away → registered as soon as somebody needs it.
 */
export class Delegator {
  readonly #ctx: Ctx;
  readonly #issuer: Issuer;
  /** The platform's own identity host: workloads are clients there and nowhere else. */
  readonly host: string;
  #clientId: string | undefined;
  #registering: Promise<string> | undefined;
  #own: Held | undefined;
  #loading: Promise<Held> | undefined;
  healthy = true;

  constructor(ctx: Ctx, issuer: Issuer) {
    this.#ctx = ctx;
    this.#issuer = issuer;
    this.host = ctx.platform.host('auth');
  }

  /** Registers, and goes on trying in the background: the gateway serves meanwhile. */
  begin(): void {
    this.#register().catch(() => {
      let tries = 0;
      const task = this.#ctx.own(
        this.#ctx.every(RETRY_MS, async () => {
          if (tries >= RETRIES) return;
          tries += 1;
          const registered = await this.#register().then(
            () => true,
            () => false,
          );
          if (!registered && tries === RETRIES) {
            this.healthy = false;
            this.#ctx.log.error({ tries }, 'the delegator could not be registered; delegation waits for the identity service');
          }
          if (registered || tries >= RETRIES) task[Symbol.dispose]();
        }),
      );
    });
  }

  /** The client that the delegator is; throws `delegator_unavailable` where it is none yet. */
  async clientId(): Promise<string> {
    return this.#clientId ?? this.#register();
  }

  /** Its own certificate-bound token, the one that was asked for last while it lasts (GWY-071, GWY-072). */
  async token(): Promise<Held> {
    if (this.#own && this.isFresh(this.#own)) return this.#own;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** Somebody refused this token: the next one is new. */
  discard(held: Held): boolean {
    if (this.#own !== held) return false;
    this.#own = undefined;
    return true;
  }

  hold({ access_token: token, expires_in: seconds }: TokenAnswer): Held {
    return { token, until: this.#ctx.clock.now().getTime() + seconds * 1_000 };
  }

  isFresh(held: Held): boolean {
    return this.freshFor(held) > 0;
  }

  /** Milliseconds for which a token is still good, with a margin for the way; 0 or less where it is not. */
  freshFor({ until }: Held): number {
    return until - MARGIN_MS - this.#ctx.clock.now().getTime();
  }

  unavailable(why: string) {
    return this.#ctx.problem('delegator_unavailable', {
      cause: new Error(`the delegator cannot act: ${why}`),
      detail: 'Try again in a moment.',
      headers: { 'retry-after': '3' },
    });
  }

  async #load(): Promise<Held> {
    try {
      const answer = await this.#issuer.token(
        this.host,
        { grant_type: 'client_credentials', client_id: await this.clientId(), scope: SCOPES },
        { as: DELEGATOR },
      );
      if (isRefusal(answer)) {
        // The identity service has forgotten the client that the file speaks of.
        if (answer.refused === 'invalid_client') await this.#forget();
        throw this.unavailable(`${answer.refused} ${answer.description ?? ''}`);
      }
      this.#own = this.hold(answer);
      this.healthy = true;
      return this.#own;
    } catch (error) {
      this.healthy = false;
      throw error;
    }
  }

  #register(): Promise<string> {
    this.#registering ??= this.#registerOnce().finally(() => {
      this.#registering = undefined;
    });
    return this.#registering;
  }

  async #registerOnce(): Promise<string> {
    try {
      this.#clientId = (await this.#kept()) ?? (await this.#announce());
      this.healthy = true;
      return this.#clientId;
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'the delegator is not registered');
      throw this.unavailable('it is not registered');
    }
  }

  /** The folder is asked for at each use: one that cannot be made is a file that cannot be written, and the gateway goes on. */
  #file(): string {
    return join(this.#ctx.files.directory('bff'), 'delegator.json');
  }

  async #kept(): Promise<string | undefined> {
    try {
      const { client_id: clientId, issuer } = JSON.parse(await readFile(this.#file(), 'utf8')) as Record<string, unknown>;
      return clientId === CLIENT && issuer === this.#issuer.identifier(this.host) ? clientId : undefined;
    } catch {
      // Nothing readable is there: registering again makes it.
      return undefined;
    }
  }

  async #announce(): Promise<string> {
    const metadata = {
      client_name: CLIENT,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      token_endpoint_auth_method: 'tls_client_auth',
      tls_client_auth_subject_dn: `CN=m2m-${CLIENT}`,
      scope: SCOPES,
    };
    const answer = await this.#issuer.register(this.host, metadata, { as: DELEGATOR });
    if (typeof answer !== 'string') throw new Error(`registration refused: ${answer.refused} ${answer.description ?? ''}`);
    await this.#keep(answer).catch(error =>
      this.#ctx.log.warn({ err: error }, 'the credential file of the delegator could not be written'),
    );
    return answer;
  }

  async #keep(clientId: string): Promise<void> {
    await replaceFile(
      this.#file(),
      JSON.stringify({
        client_id: clientId,
        issuer: this.#issuer.identifier(this.host),
        registered_at: this.#ctx.clock.now().toISOString(),
      }),
    );
  }

  async #forget(): Promise<void> {
    this.#clientId = undefined;
    await rm(this.#file(), { force: true });
  }
}
