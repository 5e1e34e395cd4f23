import type { Manifest } from '../../base/manifest.ts';
import { actionKey } from '../../identity/tokens/scope-name.ts';
import type { PqMode } from '../../identity/certificates/tls.ts';
import type { TrustAnchors } from '../../identity/certificates/trust-anchors.ts';
import type { BackendLimits } from '../../routing/connections/connection-pool.ts';

/** Everything a process must be told to run services; a child gets it over an inherited pipe, never in its environment or arguments. */
export interface Bootstrap {
  readonly domain: string;
  /** Address of this machine, which its listeners are bound to; 127.0.0.1 when absent. */
  readonly ip?: string;
  /** Port of the process's listener; any free one when absent. */
  readonly port?: number;
  /** Somebody else says whether the process may have work: it only tells that it lives. */
  readonly supervised?: boolean;
  readonly production: boolean;
  readonly dataDir: string;
  /** Where the host of this machine says that it lives. */
  readonly home?: string;
  readonly build: string;
  readonly logLevel: string;
  readonly edgePort: number;
  readonly pqMode: PqMode;
  readonly anchors: TrustAnchors;
  readonly database: DatabaseAddress;
  readonly keyValueUrl: string;
  /** Sockets that stand open in the process, by the listener door they are for. */
  readonly listeners?: Readonly<Record<string, number>>;
  /** How long the process lives on when its host is gone, until another one takes it over; for as long as it takes where it is 0. */
  readonly orphanMs?: number;
  /** What may be under way at once between services; the defaults where nothing is said. */
  readonly backends?: BackendLimits;
  /** Every platform manifest, and those of the process's own vertical: who may do what, and the catalog. */
  readonly manifests: readonly Manifest[];
  /** One secret per workload, for the first certificates of a process that cannot sign (H-03). */
  readonly enrollment: Readonly<Record<string, string>>;
}

export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  /** A managed server without certificate logins: one login, `SET ROLE` per service (day-one 3). */
  readonly login?: { readonly user: string; readonly password: string; readonly tls: boolean };
  /** Connections in the pool of one service; the default where nothing is said. */
  readonly pool?: number;
}

/** The one place that writes the origin a browser or client sees: with the port unless it is 443 (day-one, Ports). */
export const publicOrigin = (host: string, port: number): string => `https://${host}${port === 443 ? '' : `:${port}`}`;

/** Connections to the database in the pool of one service. */
export const DEFAULT_POOL = 6;

/** Address of a machine that nobody gave one. */
export const LOOPBACK = '127.0.0.1';

/** The host's own workload: it says who the verticals are that it starts, and runs the commands of its machine. */
export const HOST_WORKLOAD = 'host';
/** What the host may do at other services. */
export const HOST_NEEDS = {
  acme: ['acme:clientcert:issue', 'acme:admin'],
  auth: ['auth:membership:read', 'auth:membership:write'],
  sys: ['sys:read', 'sys:verticals:write', 'sys:verticals:found', 'audit:read'],
  bus: ['bus:contracts:write'],
  captain: ['captain:admin'],
} as const;
/** What every service needs from others because the kernel in it does: closures, events, audit, registration, renewals. */
export const KERNEL_NEEDS = {
  auth: ['auth:membership:read'],
  bus: ['bus:produce', 'bus:consume'],
  sys: ['audit:write', 'sys:verticals:write', 'sys:policy:store', 'sys:environments:read'],
} as const;

/** Scopes that services give to a workload of the platform by `callers`: each gives what is its own, and nothing else. */
const offeredTo = (workload: string, manifests: readonly Manifest[]): readonly string[] =>
  manifests.flatMap(({ vertical, actions }) =>
    Object.entries(actions).flatMap(([action, { callers }]) => (callers?.includes(workload) ? [actionKey(vertical, action)] : [])),
  );

/** Scopes of every workload that the given manifests declare, canonical. */
export function workloadGrants(manifests: readonly Manifest[]): Map<string, { vertical: string; scopes: ReadonlySet<string> }> {
  const scopesOf = (needs: Readonly<Record<string, readonly string[]>>) =>
    new Set(
      Object.entries(needs).flatMap(([service, actions]) => {
        const vertical = manifests.find(({ id }) => id === service)?.vertical ?? 'platform';
        return actions.map(action => (vertical === 'platform' ? action : `${vertical}:${action}`));
      }),
    );
  const kernel = scopesOf(KERNEL_NEEDS);
  const grants = new Map<string, { vertical: string; scopes: ReadonlySet<string> }>([
    [HOST_WORKLOAD, { vertical: 'platform', scopes: scopesOf(HOST_NEEDS) }],
  ]);
  for (const { id, vertical, uses, workloads } of manifests) {
    grants.set(id, {
      vertical,
      scopes: new Set([...kernel, ...scopesOf(uses), ...(vertical === 'platform' ? offeredTo(id, manifests) : [])]),
    });
    for (const [name, needs] of Object.entries(workloads)) grants.set(`${id}-${name}`, { vertical, scopes: scopesOf(needs) });
  }
  return grants;
}
