import { BODY, IN_FLIGHT, MANY_IN_FLIGHT, type PeerFigures, perSecond } from './figures.ts';
import { peerPackage } from './peer-package.ts';
import { withPostgres } from './postgres-peer.ts';

interface Jobs {
  migrate(): Promise<void>;
  addJob(name: string, payload: object): Promise<unknown>;
  release(): Promise<void>;
}
interface Pg {
  readonly Pool: new (
    options: object,
  ) => {
    end(): Promise<void>;
    on(event: 'error' | 'connect', heard: (client: { on(event: 'error', heard: () => void): void }) => void): void;
  };
}

/** Single sends, each its own transaction, over sixteen connections. */
export function graphileWorker(): Promise<PeerFigures> {
  const { makeWorkerUtils } = peerPackage('graphile-worker', '0.18.0').load<{ makeWorkerUtils(options: object): Promise<Jobs> }>();
  const { Pool } = peerPackage('pg', '8.16.3').load<Pg>();
  return withPostgres(async login => {
    const pgPool = new Pool(login);
    pgPool.on('error', () => {});
    pgPool.on('connect', client => client.on('error', () => {}));
    const jobs = await makeWorkerUtils({ pgPool });
    await jobs.migrate();
    const body = JSON.parse(BODY.toString()) as object;
    const inFlight = await perSecond(IN_FLIGHT, 1, () => jobs.addJob('bench', body));
    const manyInFlight = await perSecond(MANY_IN_FLIGHT, 1, () => jobs.addJob('bench', body));
    await jobs.release();
    await pgPool.end();
    return { inFlight, manyInFlight };
  });
}
