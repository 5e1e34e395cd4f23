import type { InstanceRow, KnownProcess } from '@platform/sdk';
import type { SupervisorContext } from '../context.ts';
import type { Catalog } from '../fleet/catalog.ts';
import type { Fleet } from '../fleet/fleet.ts';

const STOP_MS = 10_000;

export interface AdoptionParts {
  readonly ctx: SupervisorContext;
  readonly catalog: Catalog;
  readonly fleet: Fleet;
  readonly rows: () => Promise<readonly InstanceRow[]>;
}

/** What a supervisor does with the processes and rows that the one before it left on this machine. */
export class Adoption {
  readonly #parts: AdoptionParts;

  constructor(parts: AdoptionParts) {
    this.#parts = parts;
  }

  /** Processes that outlived the supervisor before this one are kept; those that were told other things than hold now are ended. */
  async run(progress: (text: string) => void): Promise<void> {
    const { ctx, catalog, fleet, rows: read } = this.#parts;
    const { processes: machine } = ctx;
    const found = machine.survivors();
    const keep = found.filter(({ outdated, service_type }) => {
      const entry = catalog.entry(service_type);
      return !outdated && entry?.within === false && !entry.withdrawn;
    });
    const rows = await read();
    const rowOf = ({ service_type, port }: KnownProcess) =>
      rows.find(row => row.service_type === service_type && row.ip === machine.ip && row.port === port);
    for (const known of keep) {
      progress(`Keeping ${catalog.entry(known.service_type)?.title ?? known.service_type}, which runs`);
      fleet.adopt(known, rowOf(known));
    }
    await Promise.all(found.filter(known => !keep.includes(known)).map(known => this.#end(known)));
    await this.#removeDead(rows, new Set(keep.map(({ port }) => port)));
  }

  /** Rows of processes of this machine that are gone would be taken for alive until they are stale. */
  async #removeDead(rows: readonly InstanceRow[], kept: ReadonlySet<number>): Promise<void> {
    const { catalog, ctx } = this.#parts;
    const { processes: machine } = ctx;
    const within = new Set(catalog.entries().flatMap(({ service_type, within: inside }) => (inside ? [service_type] : [])));
    const isGone = ({ service_type, port, pid }: InstanceRow) => (within.has(service_type) ? pid !== process.pid : !kept.has(port));
    for (const row of rows.filter(each => each.ip === machine.ip && isGone(each))) await machine.instances.remove(row);
  }

  async #end(known: KnownProcess): Promise<void> {
    const { processes: machine, log } = this.#parts.ctx;
    log.info({ service_type: known.service_type, pid: known.pid }, 'a process of an earlier supervisor is ended: it knows other addresses');
    machine.signal(known, 'SIGTERM');
    for (let waited = 0; waited < STOP_MS && machine.isAlive(known); waited += 50) await new Promise(resolve => setTimeout(resolve, 50));
    machine.signal(known, 'SIGKILL');
  }
}
