import type { Manifest } from '@platform/kernel/base/manifest';

/** Which promises of a contract a test run has seen kept: routes, problems, events (house 19). */
export class Coverage {
  readonly #manifest: Manifest;
  readonly #routes = new Set<string>();
  readonly #problems = new Set<string>();
  readonly #events = new Set<string>();

  constructor(manifest: Manifest) {
    this.#manifest = manifest;
  }

  seen(operation: string, status: number, problem: string | undefined): void {
    if (problem !== undefined) this.#problems.add(problem);
    else if (status < 400) this.#routes.add(operation);
  }

  emitted(event: string): void {
    this.#events.add(event);
  }

  /** What nobody has tested yet. */
  missing(): { routes: string[]; problems: string[]; events: string[] } {
    const { routes, problems, events } = this.#manifest;
    const requests = Object.entries(routes).filter(([, { door }]) => door === 'request');
    return {
      routes: requests.map(([name]) => name).filter(name => !this.#routes.has(name)),
      problems: Object.keys(problems).filter(code => !this.#problems.has(code)),
      events: Object.keys(events).filter(name => !this.#events.has(name)),
    };
  }

  /** One line: `sys: routes 41/43, problems 17/19, events 12/12`. */
  toString(): string {
    const { routes, problems, events } = this.#manifest;
    const missing = this.missing();
    const requests = Object.values(routes).filter(({ door }) => door === 'request').length;
    const of = (all: number, absent: readonly string[]) => `${all - absent.length}/${all}`;
    return `${this.#manifest.id}: routes ${of(requests, missing.routes)}, problems ${of(
      Object.keys(problems).length,
      missing.problems,
    )}, events ${of(Object.keys(events).length, missing.events)}`;
  }
}
