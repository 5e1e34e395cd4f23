import type { Transporter } from 'nodemailer';
import { senderOf } from '../people/mail-address.ts';
import { addressOf } from './private-address.ts';
import { type Adapter, DispatchFailure, type GatewaySettings, type Outgoing } from './adapter.ts';

const TIMEOUT_MS = 10_000;
const IDLE_MS = 30_000;
const MOST_POOLS = 200;

interface Pool {
  readonly transporter: Promise<Transporter>;
  users: number;
  usedAt: number;
  stale: boolean;
  /** The version of the gateway that it was made for, and whether there was a secret. */
  readonly mark: string;
}
interface SmtpError extends Error {
  readonly code?: string;
  readonly responseCode?: number;
  readonly response?: string;
}
export interface SmtpOptions {
  readonly now: () => number;
  /** Certificates that are trusted beside the system's. */
  readonly ca?: string;
}

/**
 * E-mail over SMTP, one pool of connections for each gateway as it is now; STARTTLS wherever the server offers it, and always where a
 * secret is shown.
 */
export class Smtp implements Adapter, AsyncDisposable {
  readonly name = 'smtp';
  readonly #pools = new Map<string, Pool>();
  readonly #options: SmtpOptions;
  #retired = 0;

  constructor(options: SmtpOptions) {
    this.#options = options;
  }

  async dispatch(outgoing: Outgoing, gateway: GatewaySettings, secret: Uint8Array | undefined, signal: AbortSignal): Promise<void> {
    const from = senderOf(gateway.config.from ?? '');
    if (!from) throw new DispatchFailure('the gateway names no sender: set config.from');
    const pool = this.#pool(gateway, secret);
    pool.users += 1;
    try {
      const transporter = await pool.transporter;
      const sent = await raced(
        transporter.sendMail({
          from,
          to: { name: '', address: outgoing.to },
          subject: outgoing.subject,
          text: outgoing.text,
          html: outgoing.html,
          messageId: outgoing.messageId,
          headers: { ...outgoing.headers },
          disableFileAccess: true,
          disableUrlAccess: true,
        }),
        AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      );
      // Nodemailer counts a mail as sent when one of several recipients took it; here is one.
      if ((sent.rejected ?? []).length > 0) throw new DispatchFailure('the server refused the address', { permanent: true });
    } catch (error) {
      if (error instanceof DispatchFailure) {
        if (error.away) pool.stale = true;
        throw error;
      }
      throw judged(error as SmtpError);
    } finally {
      pool.users -= 1;
      pool.usedAt = this.#options.now();
      this.sweep();
    }
  }

  /** Closes pools that nobody used for a while. */
  sweep(): void {
    const before = this.#options.now() - IDLE_MS;
    for (const [key, pool] of this.#pools) {
      if (pool.users > 0 || (!pool.stale && pool.usedAt >= before && this.#pools.size <= MOST_POOLS)) continue;
      this.#pools.delete(key);
      void pool.transporter.then(each => each.close()).catch(() => undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    for (const { transporter } of pools) (await transporter.catch(() => undefined))?.close();
  }

  /** The pool of a gateway as it is now: made at once, so that many who ask share it. */
  #pool(gateway: GatewaySettings, secret: Uint8Array | undefined): Pool {
    const credentials = secret === undefined ? undefined : authOf(secret);
    const mark = `${gateway.version} ${credentials === undefined}`;
    const known = this.#pools.get(gateway.gateway_id);
    if (known && !known.stale && known.mark === mark) return known;
    if (known) {
      // Who is under way with the one before ends there.
      known.stale = true;
      this.#retired += 1;
      this.#pools.set(`${gateway.gateway_id} retired ${this.#retired}`, known);
    }
    const made: Pool = { transporter: this.#connect(gateway, credentials), users: 0, usedAt: this.#options.now(), stale: false, mark };
    made.transporter.catch(() => {
      made.stale = true;
    });
    this.#pools.set(gateway.gateway_id, made);
    return made;
  }

  async #connect(gateway: GatewaySettings, credentials: ReturnType<typeof authOf> | undefined): Promise<Transporter> {
    const url = new URL(gateway.gateway_url as string);
    const { address } = await addressOf(url.hostname, { privateOk: gateway.private_ok }).catch(error => {
      throw new DispatchFailure((error as Error).message, { away: true });
    });
    // Loaded when the first mail goes out: it takes 20 MB.
    const { createTransport } = await import('nodemailer');
    const secure = url.protocol === 'smtps:';
    const transporter = createTransport({
      pool: true,
      maxConnections: 8,
      host: address,
      port: Number(url.port || (secure ? 465 : 587)),
      secure,
      requireTLS: !secure && credentials !== undefined,
      tls: { servername: url.hostname.replace(/^\[|\]$/g, ''), ...(this.#options.ca ? { ca: this.#options.ca } : {}) },
      ...(credentials ? { auth: credentials } : {}),
      connectionTimeout: TIMEOUT_MS,
      greetingTimeout: TIMEOUT_MS,
      socketTimeout: TIMEOUT_MS,
      dnsTimeout: TIMEOUT_MS,
    } as never) as Transporter;
    transporter.on('error', () => undefined);
    return transporter;
  }
}

/** A secret of SMTP is `user:password`. */
function authOf(secret: Uint8Array): { user: string; pass: string } {
  const text = Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength).toString('utf8').trim();
  const colon = text.indexOf(':');
  return colon < 0 ? { user: '', pass: text } : { user: text.slice(0, colon), pass: text.slice(colon + 1) };
}

/** What a server's refusal means: an address that is refused for good with 5xx at RCPT, or a fault that another try may not meet. */
export function judged({ code, responseCode, response, message }: SmtpError): DispatchFailure {
  if (code === 'EENVELOPE' && responseCode !== undefined)
    return new DispatchFailure(`the server refused the address: ${response ?? responseCode}`, {
      permanent: responseCode >= 500 && isOfAddress(response ?? ''),
    });
  if (code === 'EAUTH') return new DispatchFailure(`the server refused the credentials${responseCode ? ` (${responseCode})` : ''}`);
  if (responseCode !== undefined) return new DispatchFailure(`the server answered ${response ?? responseCode}`);
  const away = ['ECONNECTION', 'ETIMEDOUT', 'ESOCKET', 'EDNS', 'ECONNREFUSED', 'ECONNRESET'].includes(code ?? '');
  return new DispatchFailure(away ? `the server could not be reached: ${message}` : message, { away });
}

/** 5.7.x and 5.3.x speak of policy and of the server, not of the address (RFC 3463). */
const isOfAddress = (response: string): boolean => !/\b5\.[37]\.\d+\b/.test(response);

async function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  work.catch(() => undefined);
  const ended = Promise.withResolvers<never>();
  const end = () => ended.reject(new DispatchFailure('the server did not answer within 10 s', { away: true }));
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([work, ended.promise]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
