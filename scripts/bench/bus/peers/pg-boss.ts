import { BODY, IN_FLIGHT, MANY_IN_FLIGHT, type PeerFigures, perSecond } from './figures.ts';
import { peerPackage } from './peer-package.ts';
import { withPostgres } from './postgres-peer.ts';

interface Boss {
  on(event: 'error', heard: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<unknown>;
  stop(options: object): Promise<void>;
}

/** Single sends, each its own transaction, over sixteen connections. */
export function pgBoss(): Promise<PeerFigures> {
  const { PgBoss } = peerPackage('pg-boss', '12.30.0').load<{ PgBoss: new (options: object) => Boss }>();
  return withPostgres(async login => {
    const boss = new PgBoss({ ...login, supervise: false, schedule: false });
    boss.on('error', error => process.stderr.write(`  pg-boss: ${error.message}\n`));
    await boss.start();
    await boss.createQueue('bench');
    const body = JSON.parse(BODY.toString()) as object;
    const inFlight = await perSecond(IN_FLIGHT, 1, () => boss.send('bench', body));
    const manyInFlight = await perSecond(MANY_IN_FLIGHT, 1, () => boss.send('bench', body));
    await boss.stop({ graceful: false });
    return { inFlight, manyInFlight };
  });
}
