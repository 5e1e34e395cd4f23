import { isProblem } from '@platform/sdk';
import { newId } from '@platform/kernel/base/ids';
import type { Incoming, Outgoing } from '@platform/kernel/http/operation-call';
import type { ServiceApp } from '@platform/kernel/http/service-app';
import { inScope } from '@platform/kernel/telemetry/request-scope';
import type { Persona } from '../persona.ts';

/** What a caller says with an operation. */
export interface DirectInput {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly targetEnvId?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborted when the caller is gone. */
  readonly signal?: AbortSignal;
}
/** Who calls, as a door finds out. */
export type DirectCaller = Pick<Incoming, 'identity' | 'peer' | 'hostname'>;

/** A certificate as the listener would have read it: workloads have one. */
export const peerOf = ({ kind, id }: Persona): Incoming['peer'] => (kind === 'machine' ? { workload: id, thumbprint: 'test' } : undefined);

/** Runs an operation as its door does, without a wire: identity, gate, checks, handler, check of the answer. Refusals are thrown. */
export async function directCall(
  app: ServiceApp,
  name: string,
  { params = {}, query = {}, body, targetEnvId, headers, signal = new AbortController().signal }: DirectInput,
  { caller, refused }: { caller: DirectCaller; refused: (status: number, code: string) => void },
): Promise<Outgoing> {
  const correlationId = `test-${newId()}`;
  const incoming = {
    ...caller,
    params,
    query,
    headers: { ...(targetEnvId ? { 'x-platform-target-env-id': targetEnvId } : {}), ...headers },
    body: async () => (body === undefined ? undefined : JSON.parse(JSON.stringify(body))),
    correlationId,
    signal: () => signal,
    ip: '127.0.0.1',
    tenant: {},
  };
  try {
    return await inScope({ correlationId, service: app.manifest.id }, () => app.call(name, incoming));
  } catch (error) {
    if (isProblem(error)) refused(error.status, error.code);
    throw error;
  }
}
