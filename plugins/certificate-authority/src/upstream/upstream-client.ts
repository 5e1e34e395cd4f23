import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { getCACertificates } from 'node:tls';
import { FlattenedSign } from 'jose';
import type { UpstreamAccount } from './upstream-account.ts';

/** The upstream refused for a reason of the request's own (4xx). */
export class UpstreamRefused extends Error {
  readonly problem: { readonly type?: string; readonly detail?: string; readonly [member: string]: unknown };
  readonly retryAfter: string | undefined;

  constructor(problem: UpstreamRefused['problem'], retryAfter: string | undefined) {
    super(problem.detail ?? problem.type ?? 'the upstream authority refused');
    this.problem = problem;
    this.retryAfter = retryAfter;
  }
}
/** The upstream did not answer, or said that it cannot now: the same may succeed later (CA-096). */
export class UpstreamFailed extends Error {}

export interface UpstreamAnswer {
  readonly body: unknown;
  readonly text: string;
  readonly location: string | undefined;
  readonly retryAfterS: number | undefined;
}
interface Directory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
}

const DEADLINE_MS = 15_000;
const MAX_BYTES = 1_048_576;
const MOST_NONCES = 32;
const BAD_NONCE = 'urn:ietf:params:acme:error:badNonce';

/**
 * A client of one ACME server (RFC 8555): every request is a JWS with a nonce of its own and its url; one that is refused for its nonce
 * goes once more.
 */
export class UpstreamClient implements Disposable {
  readonly #url: string;
  readonly #account: UpstreamAccount;
  readonly #contact: string;
  readonly #agent: Agent;
  readonly #nonces: string[] = [];
  #directory: Promise<Directory> | undefined;
  #registering: Promise<string> | undefined;

  /** `caPem`: more roots than the system's, as PEM or as the path of a file. */
  constructor(options: { directoryUrl: string; account: UpstreamAccount; contact: string; caPem: string }) {
    this.#url = options.directoryUrl;
    this.#account = options.account;
    this.#contact = options.contact;
    const more = options.caPem === '' ? [] : [options.caPem.includes('-----BEGIN') ? options.caPem : readFileSync(options.caPem, 'utf8')];
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 16,
      ca: [...getCACertificates('default'), ...getCACertificates('system'), ...more],
      // Hybrid where the other side can, classical where it cannot (CA-028).
      ecdhCurve: 'X25519MLKEM768:X25519:P-256:P-384',
      minVersion: 'TLSv1.2',
    });
  }

  async newOrder(identifiers: readonly { readonly type: string; readonly value: string }[]): Promise<UpstreamAnswer> {
    return this.post((await this.#places()).newOrder, { identifiers });
  }

  /** Signed by the account; with no payload it only asks (POST-as-GET). */
  async post(url: string, payload?: object): Promise<UpstreamAnswer> {
    return this.#send(url, payload, { kid: await this.#kid() });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  #kid(): Promise<string> {
    if (this.#account.kid !== null) return Promise.resolve(this.#account.kid);
    this.#registering ??= this.#register().finally(() => {
      this.#registering = undefined;
    });
    return this.#registering;
  }

  async #register(): Promise<string> {
    const contact = this.#contact === '' ? [] : [this.#contact.startsWith('mailto:') ? this.#contact : `mailto:${this.#contact}`];
    const { location } = await this.#send(
      (await this.#places()).newAccount,
      { termsOfServiceAgreed: true, ...(contact.length > 0 ? { contact } : {}) },
      { jwk: this.#account.publicJwk },
    );
    if (location === undefined) throw new UpstreamFailed('the upstream authority named no account');
    await this.#account.registered(location, this.#contact);
    return location;
  }

  #places(): Promise<Directory> {
    this.#directory ??= this.#exchange(this.#url, 'GET')
      .then(({ body }) => {
        const read = body as Partial<Directory> | null;
        if (
          !read ||
          ![read.newNonce, read.newAccount, read.newOrder].every(place => typeof place === 'string' && place.startsWith('https://'))
        )
          throw new UpstreamFailed('the upstream directory is none');
        return read as Directory;
      })
      .catch(error => {
        this.#directory = undefined;
        throw error;
      });
    return this.#directory;
  }

  async #send(url: string, payload: object | undefined, signer: object): Promise<UpstreamAnswer> {
    try {
      return await this.#exchange(url, 'POST', await this.#signed(url, payload, signer));
    } catch (error) {
      if (!(error instanceof UpstreamRefused) || error.problem.type !== BAD_NONCE) throw error;
      // The refusal brought a nonce. The body is signed anew: the old one would be refused again (CA-095).
      try {
        return await this.#exchange(url, 'POST', await this.#signed(url, payload, signer));
      } catch (again) {
        if (again instanceof UpstreamRefused && again.problem.type === BAD_NONCE)
          throw new UpstreamFailed('the upstream authority refused two nonces in a row', { cause: again });
        throw again;
      }
    }
  }

  async #signed(url: string, payload: object | undefined, signer: object): Promise<string> {
    const nonce = this.#nonces.pop() ?? (await this.#freshNonce());
    const text = new TextEncoder().encode(payload === undefined ? '' : JSON.stringify(payload));
    return JSON.stringify(
      await new FlattenedSign(text).setProtectedHeader({ alg: 'ES256', nonce, url, ...signer }).sign(this.#account.key),
    );
  }

  async #freshNonce(): Promise<string> {
    await this.#exchange((await this.#places()).newNonce, 'HEAD');
    const nonce = this.#nonces.pop();
    if (nonce === undefined) throw new UpstreamFailed('the upstream authority gave no nonce');
    return nonce;
  }

  async #exchange(url: string, method: 'GET' | 'HEAD' | 'POST', body?: string): Promise<UpstreamAnswer> {
    const answer = await this.#fetch(url, method, body).catch(error => {
      throw new UpstreamFailed(`the upstream authority did not answer: ${error instanceof Error ? error.message : 'it failed'}`, {
        cause: error,
      });
    });
    const header = (name: string) => (typeof answer.headers[name] === 'string' ? (answer.headers[name] as string) : undefined);
    const nonce = header('replay-nonce');
    if (nonce !== undefined && this.#nonces.length < MOST_NONCES) this.#nonces.push(nonce);
    const read = parsed(answer.text);
    if (answer.status >= 500) throw new UpstreamFailed(`the upstream authority answered ${answer.status}`);
    if (answer.status >= 400)
      throw new UpstreamRefused(
        typeof read === 'object' && read !== null
          ? (read as UpstreamRefused['problem'])
          : { detail: `the upstream authority answered ${answer.status}` },
        header('retry-after'),
      );
    const wait = Number(header('retry-after'));
    return { body: read, text: answer.text, location: header('location'), retryAfterS: Number.isFinite(wait) ? wait : undefined };
  }

  #fetch(url: string, method: string, body: string | undefined): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
    const headers = {
      'user-agent': 'platform-acme/1',
      ...(body === undefined ? {} : { 'content-type': 'application/jose+json', 'content-length': Buffer.byteLength(body) }),
    };
    return new Promise((resolve, reject) => {
      const asked = request(url, { method, agent: this.#agent, headers, signal: AbortSignal.timeout(DEADLINE_MS) }, answer => {
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > MAX_BYTES) answer.destroy(new Error('its answer is too long'));
          else chunks.push(chunk);
        });
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString('utf8') }),
        );
      });
      asked.on('error', reject);
      asked.end(body);
    });
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
