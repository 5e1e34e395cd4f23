import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Manifest } from '@platform/kernel/base/manifest';
import { newId } from '@platform/kernel/base/ids';

const CHANGES = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** What a test run has seen of a contract, and what it has not. */
export interface ContractCoverage {
  readonly service: string;
  readonly routes: readonly string[];
  readonly problems: readonly string[];
  readonly events: readonly string[];
  /** Routes that change something and wrote an entry of the audit trail in the same request. */
  readonly audits: readonly string[];
}

/** Which promises of a contract a test run has seen kept: routes, problems, events, entries of the trail (house 19). */
export class Coverage {
  readonly #manifest: Manifest;
  readonly #routes = new Set<string>();
  readonly #problems = new Set<string>();
  readonly #events = new Set<string>();
  readonly #audits = new Set<string>();
  /** Changes that were answered, by the correlation id of their request. */
  readonly #changes = new Map<string, string>();

  constructor(manifest: Manifest) {
    this.#manifest = manifest;
  }

  /** `scope` is the request’s: whether it wrote to the audit trail, and under which id an entry of it would stand there. */
  seen(operation: string, status: number, problem: string | undefined, scope?: { audited?: boolean; correlationId: string }): void {
    if (problem !== undefined) return void this.#problems.add(this.#named(status, problem));
    if (status >= 400) return;
    this.#routes.add(operation);
    if (scope?.audited) this.#audits.add(operation);
    else if (scope && CHANGES.has(this.#manifest.routes[operation]?.method ?? '')) this.#changes.set(scope.correlationId, operation);
  }

  /** Entries that stand in a trail which the service keeps itself, by the correlation ids of their requests. */
  recorded(correlationIds: Iterable<string>): void {
    for (const id of correlationIds) {
      const operation = this.#changes.get(id);
      if (operation !== undefined) this.#audits.add(operation);
    }
  }

  /** A problem that came over the wire: a raw door writes its own, and the kernel sees an answer like any other. */
  answered(status: number, problem: Readonly<Record<string, unknown>>): void {
    const { type, code } = problem;
    if (typeof code === 'string' && type === `urn:platform:problem:${this.#manifest.id}:${code}`) this.seen('', status, code);
  }

  /** Two problems of a contract may share a code on the wire: they differ by their status. */
  #named(status: number, code: string): string {
    const shared = Object.entries(this.#manifest.problems).find(([, each]) => each.code === code && each.status === status);
    return shared?.[0] ?? code;
  }

  emitted(event: string): void {
    this.#events.add(event);
  }

  /** All that the contract promises. */
  get promised(): ContractCoverage {
    const { id, routes, problems, events } = this.#manifest;
    const requests = Object.entries(routes).filter(([, { door }]) => door === 'request');
    return {
      service: id,
      routes: requests.map(([name]) => name),
      problems: Object.keys(problems),
      events: Object.keys(events),
      audits: requests.filter(([, { method }]) => CHANGES.has(method)).map(([name]) => name),
    };
  }

  /** What was seen of it. */
  get kept(): ContractCoverage {
    const { service, ...promised } = this.promised;
    return {
      service,
      routes: promised.routes.filter(name => this.#routes.has(name)),
      problems: promised.problems.filter(code => this.#problems.has(code)),
      events: promised.events.filter(name => this.#events.has(name)),
      audits: promised.audits.filter(name => this.#audits.has(name)),
    };
  }

  /** Leaves what it knows in a folder, where `scripts/coverage.ts` adds up all test files. */
  leave(folder: string): void {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${newId()}.json`), JSON.stringify({ promised: this.promised, kept: this.kept }));
  }
}
