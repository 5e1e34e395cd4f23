import type { Instance } from '../../contract/schema/instance.ts';
import { isInTurn } from '../fleet/row-age.ts';
import type { Supervisor } from '../supervisor.ts';

/** What the supervisor shows: instances with their titles, readiness, the catalog. */
export class Views {
  readonly #supervisor: Supervisor;

  constructor(supervisor: Supervisor) {
    this.#supervisor = supervisor;
  }

  async services({
    service_type,
    status,
    q,
  }: {
    readonly service_type?: string | undefined;
    readonly status?: string | undefined;
    readonly q?: string | undefined;
  }): Promise<Instance[]> {
    const { catalog, today } = this.#supervisor;
    const entries = new Map(catalog.entries().map(entry => [entry.service_type, entry]));
    const rows = await this.#supervisor.rows(service_type === undefined ? [...entries.keys()] : [service_type]);
    const wanted = q?.toLowerCase();
    const now = this.#supervisor.ctx.clock.now();
    return rows
      .map(row => {
        const entry = entries.get(row.service_type);
        return {
          instance_key: `${row.ip}:${row.port}`,
          title: entry?.title ?? row.service_type,
          start_priority: entry?.start_priority ?? 0,
          today: today.of(row.service_type),
          ...row,
          // What a machine that died or is cut off has said last is not so any more.
          status: row.status === 'Active' && !isInTurn(row, now) ? ('Inactive' as const) : row.status,
        };
      })
      .filter(
        row =>
          (status === undefined || row.status === status) &&
          (wanted === undefined || `${row.title} ${row.service_type} ${row.instance_key} ${row.version}`.toLowerCase().includes(wanted)),
      )
      .sort(
        (left, right) =>
          left.start_priority - right.start_priority ||
          (left.title < right.title ? -1 : left.title > right.title ? 1 : left.port - right.port),
      );
  }

  async readiness(): Promise<{ ready: boolean; missing: { service_type: string; active: number; needed: number }[] }> {
    const needed = this.#supervisor.catalog
      .entries()
      .filter(({ wanted, withdrawn, min_instances }) => wanted && !withdrawn && min_instances > 0);
    const rows = await this.#supervisor.rows(needed.map(({ service_type }) => service_type));
    const now = this.#supervisor.ctx.clock.now();
    const missing = needed.flatMap(({ service_type, min_instances }) => {
      const active = rows.filter(row => row.service_type === service_type && isInTurn(row, now)).length;
      return active < min_instances ? [{ service_type, active, needed: min_instances }] : [];
    });
    return { ready: missing.length === 0, missing };
  }
}
