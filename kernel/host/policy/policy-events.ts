import { newId } from '../../base/ids.ts';
import { policyEvent } from '../../base/manifest.ts';
import { insertEvents } from '../../outbox/outbox.ts';
import type { PostgresPool } from '../../storage/postgres/postgres-pool.ts';
import { currentScope } from '../../telemetry/request-scope.ts';

/**
 * Tells of a change of a service's own policies through its outbox. The registry stores the set, the service tells of it: a process that
 * dies in between tells nobody, and the others read the store every 30 s (G-K-10).
 */
export const tellPolicy =
  (service: string, pool: PostgresPool) =>
  async (envId: string, payload: object): Promise<void> => {
    const correlationId = currentScope()?.correlationId ?? newId();
    const event = {
      id: newId(),
      env_id: envId,
      event_type: policyEvent(service),
      stream_family: 'policy',
      payload,
      correlation_id: correlationId,
      publisher_subject: service,
    };
    await pool.tx(sql => insertEvents(sql, [event]));
  };

/** What tells that relations or attributes changed: no set did, but what sets, and services, go by. */
export const policyRowsChanged = (service: string, kind: 'relations' | 'attributes') =>
  ({ service, policy_set: null, version: 0, mode: 'enforced', seeded: false, kind }) as const;
