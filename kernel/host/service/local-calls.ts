import { isProblem, type Logger } from '@platform/sdk';
import { newId } from '../../base/ids.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';
import type { Manifest } from '../../base/manifest.ts';
import { asProblem, named } from '../../http/answers/problem-response.ts';
import type { ServiceApp } from '../../http/service-app.ts';
import { type Identity, machineCaller, type Verifier } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import { outsideConsumption } from '../../outbox/consumption/consumption.ts';
import type { LocalInput, LocalService } from '../../routing/service-caller.ts';
import { inScope } from '../../telemetry/request-scope.ts';
import { LOOPBACK } from '../boot/bootstrap.ts';

export interface LocalCallsParts {
  readonly manifest: Manifest;
  readonly log: Logger;
  readonly verifier: Verifier;
  readonly workloadScopes: (name: string) => { vertical: string; scopes: ReadonlySet<string> } | undefined;
  readonly app: () => ServiceApp;
  readonly accepting: () => boolean;
}

/** Calls of a service by another one in the same process: the same checks as over the wire, without the wire. */
export class LocalCalls implements LocalService {
  readonly #parts: LocalCallsParts;
  readonly #callers = new WeakMap<Workload, Identity>();

  constructor(parts: LocalCallsParts) {
    this.#parts = parts;
  }

  async call(operation: string, input: LocalInput, from: Workload): Promise<unknown> {
    if (!this.#parts.accepting()) throw named(kernelProblem('not_ready', { headers: { 'retry-after': '1' } }), this.#parts.manifest.id);
    const correlationId = input.headers['x-platform-correlation-id'] ?? newId();
    try {
      return await outsideConsumption(() =>
        inScope({ correlationId, service: this.#parts.manifest.id, subject: from.name }, async () => {
          const outgoing = await this.#parts.app().call(operation, {
            params: input.params,
            query: input.query,
            headers: input.headers,
            identity: async () => this.#identityOf(from),
            body: async () => input.body,
            correlationId,
            signal: () => input.signal,
            ip: LOOPBACK,
            hostname: '',
            tenant: {},
            peer: { workload: from.name, thumbprint: from.thumbprint },
          });
          return outgoing.value;
        }),
      );
    } catch (error) {
      const problem = asProblem(error);
      if (!isProblem(error)) this.#parts.log[problem.level]({ operation, err: error }, 'in-process call failed');
      throw named(problem, this.#parts.manifest.id);
    }
  }

  /** The kernel's word for a workload in its own process: the verified value, no header (day-one, Plugins). */
  #identityOf(from: Workload): Identity | Promise<Identity> {
    const known = this.#callers.get(from);
    if (known) return known;
    const grants = this.#parts.workloadScopes(from.name);
    if (!grants) return this.#parts.verifier.workload(from.name, from.thumbprint);
    const identity: Identity = {
      principal: 'machine',
      scopes: grants.scopes,
      caller: machineCaller(from.name, from.thumbprint, grants.vertical, true),
    };
    this.#callers.set(from, identity);
    return identity;
  }
}
