import { correlationId } from '../live/correlation-id.ts';
import { gatewayOrigin } from './gateway-origin.ts';
import type { LogRing } from '../live/log-ring.ts';
import { Problem } from './problem.ts';
import type { Session } from './session.ts';
import { type Target, targetHeaders, targetQuery } from './target.ts';

export type Query = Readonly<Record<string, string | number | undefined>>;

export interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly query?: Query;
  readonly body?: unknown;
  readonly target?: Target | undefined;
  /** Correlation id of the user action this call belongs to; the current action when absent. */
  readonly action?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface GatewayClientOptions {
  host: string;
  log: LogRing;
  fetch?: typeof fetch;
}

/** Every request of the console goes through here and nowhere else. */
export class GatewayClient {
  readonly origin: string;
  readonly log: LogRing;
  readonly #fetch: typeof fetch;
  #csrf = '';
  #action = correlationId();

  constructor({ host, log, fetch: fetcher = (...args) => fetch(...args) }: GatewayClientOptions) {
    this.origin = gatewayOrigin(host);
    this.log = log;
    this.#fetch = fetcher;
  }

  /** Starts a user action: requests made from now on carry its id. */
  beginAction(): string {
    this.#action = correlationId();
    return this.#action;
  }

  get action(): string {
    return this.#action;
  }

  async session(): Promise<Session> {
    const session = await this.#send<Session>('/auth/session', {});
    this.#csrf = session.csrf_token;
    return session;
  }

  /** Ends this session and the sign-in it came from; `everywhere` all that the person has. */
  signOut({ everywhere = false }: { everywhere?: boolean } = {}): Promise<void> {
    return this.#send('/auth/sign-out', { method: 'POST', ...(everywhere ? { body: { everywhere } } : {}) });
  }

  /** Where the browser goes to sign in; the gateway brings it back to the same hash. Who follows an invitation is told by whom it is. */
  loginUrl(hash: string, invitation?: string): string {
    return `${this.origin}/auth/login?return_to=${encodeURIComponent(`/${hash}`)}${invitation ? `&invitation=${encodeURIComponent(invitation)}` : ''}`;
  }

  /** `path` starts with a slash; its segments are already encoded. */
  async call<T>(service: string, path: string, call: Call = {}): Promise<T> {
    const url = `/proxy/${encodeURIComponent(service)}${path}`;
    try {
      return await this.#send<T>(url, call);
    } catch (error) {
      // Another tab signed in again: the token of this page belongs to a session that is gone.
      if (!(error instanceof Problem && error.status === 403 && error.code.includes('csrf'))) throw error;
      await this.session();
      return this.#send<T>(url, call);
    }
  }

  async #send<T>(path: string, { method = 'GET', query, body, target, action = this.#action, signal }: Call): Promise<T> {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries({ ...query, ...targetQuery(target) })) {
      if (value !== undefined && value !== '') search.set(name, String(value));
    }
    const headers: Record<string, string> = {
      accept: 'application/json',
      'x-platform-correlation-id': action,
      ...targetHeaders(target),
    };
    if (method !== 'GET') headers['X-BFF-CSRF'] = this.#csrf;
    if (body !== undefined) headers['content-type'] = 'application/json';

    const started = performance.now();
    const text = `${method} ${path}`;
    let response: Response;
    let answer: string;
    try {
      response = await this.#fetch(`${this.origin}${path}${search.size ? `?${search}` : ''}`, {
        method,
        headers,
        credentials: 'include',
        cache: 'no-store',
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
      // The network may go in the middle of an answer, too.
      answer = response.ok ? await response.text() : '';
    } catch (error) {
      if (signal?.aborted) throw error;
      this.log.add({ kind: 'call', text, correlation_id: action, status: 0 });
      throw Problem.unreachable(action);
    }
    this.log.add({ kind: 'call', text, correlation_id: action, status: response.status, ms: Math.round(performance.now() - started) });
    if (!response.ok) throw await Problem.from(response, action);
    return (answer ? JSON.parse(answer) : undefined) as T;
  }
}
