import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import type { Ready } from '../../../../e2e/fixtures/platform.ts';

/** A person's HTTP client: one cookie jar, redirects by hand, the platform's root trusted and nothing else. */
export class BrowserSession implements AsyncDisposable {
  readonly #cookies = new Map<string, Map<string, string>>();
  readonly #agent: Agent;
  readonly #ready: Ready;
  csrf = '';

  constructor(ready: Ready) {
    this.#ready = ready;
    // *.localhost is loopback by definition; Node's resolver does not know that.
    this.#agent = new Agent({
      connections: 8,
      connect: { ca: readFileSync(ready.ca_root), lookup: (_host, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]) },
    });
  }

  async fetch(url: string, init: { method?: 'GET' | 'POST' | 'PUT'; body?: unknown; headers?: Record<string, string> } = {}) {
    const { hostname, origin } = new URL(url);
    const cookie = this.cookieFor(url);
    const response = await request(url, {
      dispatcher: this.#agent,
      method: init.method ?? 'GET',
      headers: {
        accept: 'application/json, text/html',
        ...(cookie ? { cookie } : {}),
        ...(init.body === undefined ? {} : { 'content-type': 'application/json', origin }),
        ...init.headers,
      },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    });
    for (const cookie of [response.headers['set-cookie'] ?? []].flat()) this.#store(cookie, hostname);
    return { status: response.statusCode, location: response.headers['location'] as string | undefined, text: await response.body.text() };
  }

  /** What a browser sends in `Cookie` to this address. */
  cookieFor(url: string): string {
    const { hostname } = new URL(url);
    const jars = [...this.#cookies].filter(([domain]) => hostname === domain || hostname.endsWith(`.${domain}`));
    return jars.flatMap(([, jar]) => [...jar].map(([name, value]) => `${name}=${value}`)).join('; ');
  }

  /** The whole way: gateway, pushed request, sign-in page, callback, session. Chooses a new password when asked. */
  async signIn(email: string, password: string, nextPassword: string): Promise<void> {
    const { gateway, auth } = this.#ready;
    let at = new URL((await this.fetch(`${gateway}/auth/login?return_to=/`)).location as string);
    at = new URL((await this.fetch(at.href)).location as string, at);
    const oauth = Object.fromEntries(at.searchParams);
    let answer = JSON.parse((await this.fetch(`${auth}/v1/sign-in`, { method: 'POST', body: { email, password, oauth } })).text) as {
      status: string;
      next: string;
    };
    if (answer.status === 'password_change_required')
      answer = JSON.parse(
        (await this.fetch(`${auth}/v1/password/change`, { method: 'POST', body: { password: nextPassword, oauth } })).text,
      ) as { status: string; next: string };
    if (answer.status !== 'ok') throw new Error(`sign-in answered ${JSON.stringify(answer)}`);
    for (let url: string | undefined = new URL(answer.next, auth).href; url && !url.startsWith(this.#ready.console); ) {
      const step: { location: string | undefined } = await this.fetch(url);
      url = step.location && new URL(step.location, url).href;
    }
    const session = JSON.parse((await this.fetch(`${gateway}/auth/session`)).text) as { csrf_token?: string };
    if (!session.csrf_token) throw new Error('no session after sign-in');
    this.csrf = session.csrf_token;
  }

  close(): Promise<void> {
    return this.#agent.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #store(cookie: string, host: string): void {
    const [pair = '', ...attributes] = cookie.split(';').map(part => part.trim());
    const at = pair.indexOf('=');
    const domain = attributes.find(attribute => /^domain=/i.test(attribute))?.slice(7) ?? host;
    const jar = this.#cookies.get(domain) ?? new Map<string, string>();
    this.#cookies.set(domain, jar);
    if (attributes.some(attribute => /^max-age=0$/i.test(attribute))) jar.delete(pair.slice(0, at));
    else jar.set(pair.slice(0, at), pair.slice(at + 1));
  }
}
