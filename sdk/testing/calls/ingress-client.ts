import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions } from 'node:https';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { WebSocket } from 'ws';
import type { Coverage } from '../coverage.ts';
import { type WireRequest, wireAnswer } from './wire-request.ts';

/** A request from outside, and what the ingress has found out about it. */
export interface IngressRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: WireRequest['body'];
  /** The host that was asked, and whose it is. */
  readonly host: string;
  readonly tenant?: { readonly envId?: string; readonly appInstanceId?: string };
  readonly ip?: string;
  /** Hangs up. */
  readonly signal?: AbortSignal;
}
interface Process {
  readonly process: { readonly port: number };
  readonly manifest: { readonly id: string };
  readonly stores: { readonly authority: { readonly pq: { readonly files: { readonly rootCertificate: string } } } };
  readonly coverage: Coverage;
  workload(name: string): Promise<{ cert: string; key: string }>;
}

const EMPTY = new Set([204, 205, 304]);
const CORRELATION = 'x-platform-correlation-id';

/**
 * The ingress as a service sees it: its certificate, kept connections, and its word on host, tenant and address behind the headers of the
 * client (G-PROXY-02).
 */
export class IngressClient implements Disposable {
  readonly #service: string;
  readonly #tls: RequestOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #coverage: Coverage;

  private constructor({ process, manifest, stores, coverage }: Process, certificate: { cert: string; key: string }) {
    this.#service = manifest.id;
    this.#coverage = coverage;
    this.#tls = {
      port: process.port,
      servername: `${manifest.id}.ops.sys.localhost`,
      ca: stores.authority.pq.files.rootCertificate,
      minVersion: 'TLSv1.3',
      ecdhCurve: 'X25519MLKEM768',
      ...certificate,
    };
  }

  /** The way into a booted service. */
  static async to(host: Process): Promise<IngressClient> {
    return new IngressClient(host, await host.workload('proxy'));
  }

  /** The answer when its head is there; its body comes as the service sends it. */
  async fetch(path: string, { method = 'GET', body, signal, ...request }: IngressRequest): Promise<Response> {
    const response = responseOf(
      await wireAnswer({
        ...this.#tls,
        agent: this.#agent,
        path,
        method,
        headers: this.#headers(request),
        body,
        ...(signal ? { signal } : {}),
      }),
    );
    if (!response.headers.get('content-type')?.startsWith('application/problem+json')) return response;
    const text = await response.text();
    this.#coverage.answered(response.status, JSON.parse(text) as Record<string, unknown>);
    return new Response(text, response);
  }

  /** A WebSocket that is being opened. */
  socket(path: string, request: Pick<IngressRequest, 'headers' | 'host' | 'tenant' | 'ip'>): WebSocket {
    return new WebSocket(`wss://127.0.0.1:${this.#tls.port}${path}`, { ...this.#tls, headers: this.#headers(request) } as never);
  }

  #headers({ headers = {}, host, tenant = {}, ip = '203.0.113.7' }: IngressRequest): Record<string, string> {
    const kept = Object.entries(headers).filter(([name]) => name === CORRELATION || !name.startsWith('x-platform-'));
    return {
      ...Object.fromEntries(kept),
      host,
      'x-platform-hostname': host,
      'x-platform-service': this.#service,
      ...(tenant.envId ? { 'x-platform-env-id': tenant.envId } : {}),
      ...(tenant.appInstanceId ? { 'x-platform-app-id': tenant.appInstanceId } : {}),
      'x-platform-caller-service': 'proxy',
      'x-forwarded-for': ip,
      'x-forwarded-proto': 'https',
      'x-forwarded-host': host,
    };
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** An answer of the wire in the form of the web. */
export function responseOf(answer: IncomingMessage): Response {
  const headers = new Headers();
  for (const [name, values] of Object.entries(answer.headersDistinct)) for (const value of values ?? []) headers.append(name, value);
  const status = answer.statusCode ?? 0;
  if (EMPTY.has(status)) answer.resume();
  return new Response(EMPTY.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array> as never), { status, headers });
}
