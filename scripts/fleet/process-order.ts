import { manifestOf } from '@platform/kernel/base/manifest';
import type { Bootstrap } from '@platform/kernel/host/boot/bootstrap';
import { type Authority, anchorsOf } from '@platform/kernel/identity/certificates/trust-anchors';
import type { AnyContract } from '@platform/sdk';

/** What a service in a process of its own is told. */
export interface ProcessOrder {
  readonly service: 'auth' | 'bus' | 'sys';
  /** Events go nowhere, so that only what is measured is measured. */
  readonly withoutBus: boolean;
  /** Nobody else runs: the registry takes audit events and knows no policy. */
  readonly alone: boolean;
  readonly bootstrap: Bootstrap;
  readonly environment: Readonly<Record<string, string>>;
  readonly jwks: { keys: JsonWebKey[] };
}

export interface Ordered
  extends Pick<ProcessOrder, 'service' | 'jwks'>,
    Partial<Pick<ProcessOrder, 'withoutBus' | 'alone' | 'environment'>>,
    Pick<Bootstrap, 'dataDir' | 'database' | 'keyValueUrl'> {
  readonly authority: Authority;
  /** The catalog: the service itself, and everybody whose workload or events it must know. */
  readonly contracts: readonly AnyContract[];
}

export function orderOf({
  service,
  jwks,
  withoutBus = false,
  alone = false,
  environment = {},
  dataDir,
  database,
  keyValueUrl,
  authority,
  contracts,
}: Ordered): ProcessOrder {
  return {
    service,
    withoutBus,
    alone,
    environment,
    jwks,
    bootstrap: {
      domain: 'localhost',
      production: false,
      dataDir,
      build: 'bench',
      logLevel: 'error',
      edgePort: 8443,
      pqMode: 'strict',
      anchors: anchorsOf(authority),
      database,
      keyValueUrl,
      manifests: contracts.map(contract => manifestOf(contract, '0.0.0-bench')),
      enrollment: {},
    },
  };
}
