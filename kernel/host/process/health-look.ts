import { Agent, request } from 'node:https';
import type { HealthAnswer } from '@platform/sdk';
import type { Workload } from '../../identity/workload.ts';

const MAX_ANSWER = 65_536;
/** What a process that is still being set up answers with: nothing listens, or the handshake ends (SUP-034). */
const WARMING = /access denied|certificate|handshake|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|socket hang up|secure TLS connection/i;

/** What a connection is kept for. The agent of Node would put all keys and certificates into the name, at every look. */
class KeptConnections extends Agent {
  override getName({ host, port, servername }: { host?: string; port?: number; servername?: string } = {}): string {
    return `${host}:${port}:${servername}`;
  }
}

/** Looks at the health of instances over mutual TLS, on connections that are kept. */
export class HealthLook implements Disposable {
  readonly #agent = new KeptConnections({ keepAlive: true, maxSockets: 2, maxTotalSockets: 256, timeout: 30_000 });
  readonly #tls: () => ReturnType<Workload['clientTls']>;
  readonly #hostOf: (service: string) => string;

  constructor(tls: () => ReturnType<Workload['clientTls']>, hostOf: (service: string) => string) {
    this.#tls = tls;
    this.#hostOf = hostOf;
  }

  look(service: string, { ip, port }: { ip: string; port: number }, timeoutMs: number): Promise<HealthAnswer> {
    const host = this.#hostOf(service);
    const began = performance.now();
    return new Promise(resolve => {
      const unwell = (reason: string, warming: boolean) => resolve({ ok: false, reason, warming });
      const outgoing = request(
        { host: ip, port, path: '/v1/health', servername: host, agent: this.#agent, ...this.#tls(), headers: { host } },
        response => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk: string) => {
            text += chunk;
            if (text.length > MAX_ANSWER) response.destroy(new Error('the answer is too large'));
          });
          response.on('error', error => unwell(error.message, false));
          response.on('end', () => {
            const { statusCode = 0 } = response;
            // An answer that is no success is never forgiven (SUP-035).
            if (statusCode < 200 || statusCode > 299) return unwell(`answered ${statusCode}`, false);
            const { active_connections = 0, requests = 0, server_errors = 0 } = read(text);
            resolve({
              ok: true,
              latency_ms: Math.round((performance.now() - began) * 10) / 10,
              active_connections,
              api_calls: requests,
              errors: server_errors,
            });
          });
        },
      );
      outgoing.setTimeout(timeoutMs, () => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)));
      outgoing.on('error', error => {
        const said = `${(error as NodeJS.ErrnoException).code ?? ''} ${error.message}`.trim();
        unwell(said, WARMING.test(said));
      });
      outgoing.end();
    });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

function read(text: string): { active_connections?: number; requests?: number; server_errors?: number } {
  try {
    return JSON.parse(text) as { active_connections?: number };
  } catch {
    return {};
  }
}
