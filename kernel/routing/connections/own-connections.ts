import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connect as tlsConnect, type TLSSocket } from 'node:tls';
import { type FairShare, type Forwarded, isProblem } from '@platform/sdk';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { RevokedCertificates } from '../../identity/certificates/revoked-certificates.ts';
import type { Workload } from '../../identity/workload.ts';
import { backendHeaders, refuseUnsendable, RESPONSE_MS, unanswered } from '../backend-request.ts';
import { type Address, CONNECT_MS, nextAddress, PROBE_MS } from './dial.ts';
import type { Directory } from '../directory.ts';
import { Forwarding } from '../forwarding.ts';
import { sendTrailed } from '../trailed-request.ts';

interface Upgrading {
  readonly req: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly headers: Record<string, string>;
  readonly party: string;
}
type Trailed = Required<Pick<Forwarded, 'req' | 'res' | 'headers' | 'party'>> & {
  readonly body: NonNullable<Forwarded['body']>;
  readonly trailers: NonNullable<Forwarded['trailers']>;
};
export interface OwnConnectionsOptions {
  readonly directory: Directory;
  readonly hostOf: (service: string) => string;
  /** Places of what lasts, shared with the pools. */
  readonly lasting: FairShare;
  readonly revoked?: RevokedCertificates | undefined;
}

/** Connections to backends that serve one exchange each: an upgrade, or a request with trailers. */
export class OwnConnections {
  readonly #options: OwnConnectionsOptions;

  constructor(options: OwnConnectionsOptions) {
    this.#options = options;
  }

  /** Joins the client's socket to a backend's; resolves when both sides have ended. */
  async upgrade(workload: Workload, service: string, { req, socket, head, headers, party }: Upgrading): Promise<void> {
    const { hostOf } = this.#options;
    refuseUnsendable({ method: req.method ?? 'GET', path: req.url ?? '/' });
    using _place = this.#place(party, () => socket.destroy());
    const { upstream } = await this.#reach(workload, service);
    const said = backendHeaders(headers, {
      host: headers['host'] ?? hostOf(service),
      connection: 'Upgrade',
      upgrade: 'websocket',
      'x-platform-service': service,
    });
    const lines = Object.entries(said).map(([name, value]) => `${name}: ${value}`);
    upstream.write(`${req.method} ${req.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    if (head.length > 0) upstream.write(head);
    await Promise.allSettled([pipeline(upstream, socket), pipeline(socket, upstream)]);
  }

  /** Forwards a request with trailers (RFC 9110 6.5); resolves when the head of the answer was written. */
  async forward(workload: Workload, service: string, { req, res, headers, body, party, trailers }: Trailed): Promise<void> {
    const { directory, hostOf } = this.#options;
    const [method, path] = [req.method ?? 'GET', req.url ?? '/'];
    refuseUnsendable({ method, path });
    const place = this.#place(party, () => res.destroy());
    const forwarding = new Forwarding(req, res);
    let address: Address | undefined;
    try {
      const reached = await this.#reach(workload, service);
      const { upstream } = reached;
      address = reached.address;
      const { trailer } = headers;
      const said = backendHeaders(headers, { host: hostOf(service), 'x-platform-service': service, ...(trailer ? { trailer } : {}) });
      sendTrailed(upstream, { method, path, headers: said, body, trailers, timeoutMs: RESPONSE_MS }, forwarding);
      void forwarding.ended.catch(() => undefined).finally(() => (upstream.destroy(), place[Symbol.dispose]()));
      await forwarding.answered;
      directory.trust(address);
    } catch (cause) {
      place[Symbol.dispose]();
      // Gone, or answered by somebody else: nothing is wrong with the backend.
      if (res.destroyed || res.closed || res.headersSent) throw cause;
      if (address) directory.suspect(address);
      throw isProblem(cause) ? cause : unanswered(service, cause);
    }
  }

  /** A connection to the next instance, or to the one after it where that does not answer: nothing was sent yet (hardening H-27). */
  async #reach(workload: Workload, service: string): Promise<{ upstream: TLSSocket; address: Address }> {
    const { directory } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const address = await nextAddress(directory, service);
      try {
        return { upstream: await this.#connect(workload, service, address), address };
      } catch (cause) {
        directory.suspect(address);
        if (attempt > 0) throw cause;
      }
    }
  }

  #place(party: string, end: () => void): Disposable {
    const place = this.#options.lasting.admit(party, end);
    if (!place) throw kernelProblem('too_many_streams', { headers: { 'retry-after': '5' } });
    return place;
  }

  #connect(workload: Workload, service: string, { ip, port }: Address): Promise<TLSSocket> {
    const { hostOf, revoked } = this.#options;
    const checks = revoked ? { checkServerIdentity: revoked.checkServer } : {};
    return new Promise((resolve, reject) => {
      const socket = tlsConnect(
        { host: ip, port, servername: hostOf(service), ...workload.clientTls(), ...checks, timeout: CONNECT_MS },
        () => {
          socket.setTimeout(0);
          socket.removeAllListeners('timeout');
          socket.setKeepAlive(true, PROBE_MS);
          resolve(socket);
        },
      );
      socket.once('timeout', () => socket.destroy(new Error('connect timeout')));
      socket.once('error', cause => reject(unanswered(service, cause)));
    });
  }
}
