import { readFileSync } from 'node:fs';
import type { Logger, ProcessHost, Runnable } from '@platform/sdk';
import type { CatalogEntry, CatalogFileEntry } from '../../contract/schema/catalog.ts';
import { isPlacementKey } from './placement-gate.ts';

const NEVER_PCT = 101;

/** A line of the catalog: what can run here (SUP-078). */
export type Entry = CatalogEntry & {
  readonly builtin: boolean;
  readonly wanted: boolean;
  readonly withdrawn: boolean;
  readonly within: boolean;
  readonly title: string;
  readonly version: string;
};

/**
 * Everything that can be started on this machine: what the platform ships, verticals, and lines that were merged in (SUP-011). A later line
 * of one service takes the place of an earlier one; what is built in keeps its code, and cannot be removed.
 */
export class Catalog {
  readonly #machine: Pick<ProcessHost, 'runnable'>;
  readonly #merged = new Map<string, CatalogEntry>();
  #known: { readonly of: readonly Runnable[]; readonly entries: readonly Entry[] } | undefined;

  constructor(machine: Pick<ProcessHost, 'runnable'>) {
    this.#machine = machine;
  }

  entries(): readonly Entry[] {
    const runnable = this.#machine.runnable();
    if (this.#known?.of === runnable) return this.#known.entries;
    const entries = runnable
      .map(service => ({ ...entryOf(service), ...this.#merged.get(service.service_type), ...factsOf(service) }))
      .sort((left, right) => left.start_priority - right.start_priority || (left.service_type < right.service_type ? -1 : 1));
    this.#known = { of: runnable, entries };
    return entries;
  }

  entry(service: string): Entry | undefined {
    return this.entries().find(({ service_type }) => service_type === service);
  }

  isBuiltin(service: string): boolean {
    return this.entry(service)?.builtin ?? false;
  }

  merge(entry: CatalogEntry): 'added' | 'updated' {
    const known = this.#merged.has(entry.service_type) || this.entry(entry.service_type) !== undefined;
    this.#merged.set(entry.service_type, entry);
    this.#known = undefined;
    return known ? 'updated' : 'added';
  }

  /**
   * Reads files of `PLATFORM_CAPTAIN_CATALOG_PATHS`. A line that is wrong is named and passed over: a machine that starts nothing helps
   * nobody.
   */
  readFiles(
    paths: readonly string[],
    { check, log }: { check: (entry: unknown) => readonly { pointer: string; message: string }[]; log: Logger },
  ): CatalogFileEntry[] {
    const read: CatalogFileEntry[] = [];
    for (const path of paths) {
      let lines: unknown;
      try {
        const parsed = JSON.parse(readFileSync(path, 'utf8')) as unknown;
        lines = Array.isArray(parsed) ? parsed : (parsed as { services?: unknown }).services;
      } catch (error) {
        log.error({ path, err: error }, 'a file of the catalog cannot be read');
        continue;
      }
      for (const [at, line] of (Array.isArray(lines) ? lines : []).entries()) {
        const faults = check(line);
        const entry = line as CatalogFileEntry;
        const keys = faults.length > 0 ? [] : entry.placement.filter(key => !isPlacementKey(key));
        if (faults.length > 0 || keys.length > 0)
          log.error(
            { path, line: at, faults, keys, alert: 'captain.catalog.invalid' },
            'a line of the catalog is wrong and does not count',
          );
        else if (this.isBuiltin(entry.service_type))
          log.warn(
            { path, service_type: entry.service_type },
            'a line of the catalog names a service of the platform; its code and its place stay',
          );
        else {
          const { entry: _, env_allow: __, ...line } = entry;
          this.merge(line);
          read.push(entry);
        }
      }
    }
    return read;
  }
}

const factsOf = ({ title, version, wanted, withdrawn, within, vertical, min_instances }: Runnable) => ({
  title,
  version,
  wanted,
  withdrawn,
  within,
  builtin: vertical === 'platform',
  ...(vertical === 'platform' ? {} : { min_instances }),
});

function entryOf({ service_type, start_priority, placement, singleton, min_instances }: Runnable): CatalogEntry {
  return {
    service_type,
    start_priority,
    placement: [...placement],
    singleton,
    min_instances,
    health: { path: '/v1/health', timeout_ms: 2_000 },
    // Inside one machine nothing scales: no sample reaches this (SUP-047).
    provision: { cpu_pct: NEVER_PCT, mem_pct: NEVER_PCT },
  };
}
