import type { GatewayClient } from './gateway/gateway-client.ts';
import { Problem } from './gateway/problem.ts';

export interface AuditEntry {
  readonly audit_id: string;
  readonly ts: string;
  readonly service: string;
  readonly env_id: string;
  readonly action: string;
  readonly actor: { readonly kind: 'user' | 'workload'; readonly id: string; readonly act?: string };
  readonly resource?: { readonly type: string; readonly id: string };
  readonly outcome: 'success' | 'denied' | 'error';
  readonly details?: unknown;
  readonly correlation_id: string;
  readonly occurred_at?: string;
}
export interface AuditKey {
  readonly after_ts: string;
  readonly after_id: string;
}
/** Somebody who acts, as identity knows people. */
export interface Actor {
  readonly user_id: string;
  readonly email: string;
  readonly display_name: string | null;
}
export interface AuditPage {
  readonly items: readonly AuditEntry[];
  readonly next: AuditKey | null;
}
export interface AuditFilter {
  readonly env_id: string;
  readonly service?: string;
  readonly action?: string;
  readonly correlation_id?: string;
}
/** One step of the proof that a trail was not changed. */
export interface AuditVerification {
  readonly status: 'intact' | 'unfinished' | 'broken';
  readonly position: number;
  readonly head: number;
  readonly hash: string;
  readonly key_id: string;
  /** Since when the machine that answers has seen it signed. */
  readonly witnessed?: { readonly position: number; readonly since: string };
  readonly cut?: { readonly position: number; readonly cut_at: string };
  readonly fault?: { readonly kind: string; readonly position: number; readonly audit_id?: string; readonly detail: string };
  readonly next_cursor: string | null;
}

/** The canonical trail; where it is refused or broken, identity keeps one of its own. */
export class AuditTrail {
  readonly #client: GatewayClient;
  readonly #services: { registry: string; identity: string };

  constructor(client: GatewayClient, services: { registry: string; identity: string }) {
    this.#client = client;
    this.#services = services;
  }

  async read(filter: AuditFilter, after?: AuditKey | null, signal?: AbortSignal): Promise<AuditPage & { source: 'registry' | 'identity' }> {
    const call = { query: { ...filter, limit: 100, ...after }, target: { env: filter.env_id }, signal };
    try {
      return { ...(await this.#client.call<AuditPage>(this.#services.registry, '/v1/audit', call)), source: 'registry' };
    } catch (error) {
      if (!(error instanceof Problem && (error.denied || error.absent || error.status >= 500))) throw error;
      try {
        return { ...(await this.#client.call<AuditPage>(this.#services.identity, '/v1/admin/audit', call)), source: 'identity' };
      } catch {
        // What the canonical trail said explains more than what its substitute says.
        throw error;
      }
    }
  }

  /** Who acted: one of the environment's own people, or of those who sign in to the console. */
  async actor(userId: string, env: string): Promise<Actor> {
    const ask = (target?: { env: string }) =>
      this.#client.call<Actor>(this.#services.identity, `/v1/admin/users/${encodeURIComponent(userId)}`, { target });
    try {
      return await ask({ env });
    } catch (error) {
      if (!(error instanceof Problem && error.absent)) throw error;
      return ask();
    }
  }

  /** Walks the whole chain of an environment, telling after each step how far it is. */
  async verify(env: string, told: (step: AuditVerification) => void, signal: AbortSignal): Promise<AuditVerification> {
    for (let cursor: string | undefined; ; ) {
      const step: AuditVerification = await this.#client.call(this.#services.registry, '/v1/audit/verification', { query: { env_id: env, cursor }, target: { env }, signal });
      told(step);
      if (step.next_cursor === null) return step;
      cursor = step.next_cursor;
    }
  }
}
