import type { DisposalStack } from '../../base/disposal-stack.ts';
import { anchorsOf, type Authority, type TrustAnchors } from '../../identity/certificates/trust-anchors.ts';
import { connectKeyValue } from '../../storage/key-value.ts';
import { RestrictedLogins } from '../../storage/valkey/restricted-logins.ts';
import { HOST_WORKLOAD } from './bootstrap.ts';
import type { HostOptions } from '../host-options.ts';
import { openStores, type Stores } from './stores.ts';

/** What a machine stands on: stores and trust of its own, or those of the fleet it joined. */
export interface Ground {
  /** Only where the authority's files are. */
  readonly authority: Authority | undefined;
  readonly anchors: TrustAnchors;
  readonly stores: Stores;
  /** For the first certificates of the host's own process. */
  readonly enrollment: (workloads: readonly string[]) => Readonly<Record<string, string>>;
}

/** The first machine: the authority's files lie here, and so do the stores unless the settings say otherwise. */
export async function openGround(owned: DisposalStack, options: HostOptions, authority: Authority): Promise<Ground> {
  return { authority, anchors: anchorsOf(authority), stores: await openStores(owned, { ...options, authority }), enrollment: () => ({}) };
}

/** A machine that was invited: nothing is kept here but keys of its own. */
export async function joinGround(owned: DisposalStack, { join }: HostOptions): Promise<Ground> {
  if (!join) throw new Error('nobody invited this machine');
  const { key_value_url: keyValueUrl, database, anchors, enrollment } = join;
  const store = owned.own({ ...(await opened(keyValueUrl)) });
  const logins = owned.own(new RestrictedLogins(keyValueUrl));
  return {
    authority: undefined,
    anchors,
    stores: {
      database,
      keyValueUrl,
      answer: async () => void (await store.ping()),
      connections: async () => undefined,
      // The first machine has made schemas and roles before it invited anybody.
      ensureService: async () => undefined,
      restrictedKeyValueUrl: service => logins.add(service),
    },
    enrollment: workloads => Object.fromEntries([HOST_WORKLOAD, ...workloads].map(name => [name, enrollment])),
  };
}

async function opened(url: string): Promise<{ ping(): Promise<unknown> } & AsyncDisposable> {
  const store = await connectKeyValue(url);
  return { ping: () => store.client.ping(), [Symbol.asyncDispose]: () => store.close() };
}
