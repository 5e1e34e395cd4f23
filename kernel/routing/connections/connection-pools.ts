import type { FairShare, Logger } from '@platform/sdk';
import { buildConnector, Client } from 'undici';
import type { RevokedCertificates } from '../../identity/certificates/revoked-certificates.ts';
import type { Workload } from '../../identity/workload.ts';
import { type BackendLimits, ConnectionPool, type PoolFigures } from './connection-pool.ts';
import { type Address, CONNECT_MS } from './dial.ts';

const KEEP_ALIVE_MS = 30_000;
const MAX_POOLS = 256;

export interface ConnectionPoolsOptions {
  readonly hostOf: (service: string) => string;
  readonly limits: BackendLimits;
  readonly lasting: FairShare;
  readonly log: Logger;
  /** Backends that show one of these are not talked to. */
  readonly revoked?: RevokedCertificates | undefined;
}

/** One pool for each caller's workload, target service and address, as long as the certificates it was made with are good. */
export class ConnectionPools implements AsyncDisposable {
  readonly #options: ConnectionPoolsOptions;
  readonly #pools = new Map<string, ConnectionPool>();
  readonly #watched = new WeakSet<Workload>();
  readonly #hearing: Disposable | undefined;
  /** What pools that are gone had counted. */
  #past = { lost: 0, refused: 0 };

  constructor(options: ConnectionPoolsOptions) {
    this.#options = options;
    // Which connections are to whom is known at their start alone: all are made anew, those in use when they are free.
    this.#hearing = options.revoked?.onRevoked(() => [...this.#pools.keys()].forEach(key => this.#drop(key)));
  }

  /** The sums over all pools; what was lost or refused counts those of pools that are gone as well. */
  get figures(): PoolFigures {
    const { lost, refused, ...now } = summed([...this.#pools.values()]);
    return { ...now, lost: lost + this.#past.lost, refused: refused + this.#past.refused };
  }

  /** What goes over connections to one instance. */
  to(service: string, { ip, port }: Address): PoolFigures {
    return summed([...this.#pools].flatMap(([key, pool]) => (key.endsWith(` ${service} ${ip}:${port}`) ? [pool] : [])));
  }

  of(workload: Workload, service: string, { ip, port }: Address): ConnectionPool {
    const key = `${workload.name} ${service} ${ip}:${port}`;
    const { hostOf, revoked, limits, lasting, log } = this.#options;
    let pool = this.#pools.get(key);
    if (!pool) {
      const connect = buildConnector({
        ...workload.clientTls(),
        ...(revoked ? { checkServerIdentity: revoked.checkServer } : {}),
        servername: hostOf(service),
        timeout: CONNECT_MS,
      });
      pool = new ConnectionPool({
        name: key,
        connect: () => new Client(`https://${ip}:${port}`, { connect, pipelining: 1, keepAliveTimeout: KEEP_ALIVE_MS }),
        limits,
        lasting,
        log,
      });
      this.#pools.set(key, pool);
      if (this.#pools.size > MAX_POOLS) this.#drop(this.#pools.keys().next().value as string);
    }
    this.#watch(workload);
    return pool;
  }

  /** A renewed certificate is shown on new connections; those in use finish on the old one. */
  #watch(workload: Workload): void {
    if (this.#watched.has(workload)) return;
    this.#watched.add(workload);
    workload.onRenewed(kind => {
      if (kind === 'client') for (const key of [...this.#pools.keys()]) if (key.startsWith(`${workload.name} `)) this.#drop(key);
    });
  }

  #drop(key: string): void {
    const pool = this.#pools.get(key);
    this.#pools.delete(key);
    if (!pool) return;
    const { lost, refused } = pool.figures;
    this.#past = { lost: this.#past.lost + lost, refused: this.#past.refused + refused };
    pool.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hearing?.[Symbol.dispose]();
    await Promise.all([...this.#pools.values()].map(pool => pool.destroy()));
    this.#pools.clear();
  }
}

function summed(pools: readonly ConnectionPool[]): PoolFigures {
  const all = pools.map(({ figures }) => figures);
  const sum = (name: keyof PoolFigures) => all.reduce((total, figures) => total + figures[name], 0);
  return {
    ordinary: sum('ordinary'),
    lasting: sum('lasting'),
    waiting: sum('waiting'),
    idle: sum('idle'),
    lost: sum('lost'),
    refused: sum('refused'),
  };
}
