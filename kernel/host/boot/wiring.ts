import 'reflect-metadata';
import { type KeyValue, type Logger, type TokenChecks, platformHost } from '@platform/sdk';
import { container as root, type DependencyContainer, type InjectionToken, instanceCachingFactory } from 'tsyringe';
import type { Clock } from '../../base/clock.ts';
import { AccessClosures } from '../../identity/tokens/access-closure.ts';
import { DpopProofs } from '../../identity/tokens/dpop-proof.ts';
import { EnvironmentStates } from '../../identity/environment-states.ts';
import { Issuers } from '../../identity/tokens/issuers.ts';
import { KeySet } from '../../identity/tokens/key-set.ts';
import { readSignedToken } from '../../identity/tokens/signed-token.ts';
import { Verifier } from '../../identity/tokens/verifier.ts';
import type { Workload } from '../../identity/workload.ts';
import { deliverTo } from '../../outbox/relay/bus-delivery.ts';
import { Relay } from '../../outbox/relay/relay.ts';
import { RevokedCertificates } from '../../identity/certificates/revoked-certificates.ts';
import { BackendPools } from '../../routing/backend-pools.ts';
import { Directory } from '../../routing/directory.ts';
import { type LocalService, ServiceCaller } from '../../routing/service-caller.ts';
import { SecretChain } from '../../secrets/secret-chain.ts';
import { type Bootstrap, publicOrigin, workloadGrants } from './bootstrap.ts';
import { directoryStore, liveReader } from '../service/key-value-port.ts';
import { deliveryTargets, environmentState, identityCalls } from '../platform-calls.ts';

/** What a process brings before anything can be wired. */
export interface WiringParts {
  readonly bootstrap: Bootstrap;
  readonly clock: Clock;
  readonly log: Logger;
  readonly kv: KeyValue;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly locals: ReadonlyMap<string, LocalService>;
  readonly workloads: ReadonlyMap<string, Workload>;
  readonly jwks: (() => Promise<{ keys: JsonWebKey[] }>) | undefined;
  readonly issuers: ((issuer: string) => Promise<string | undefined>) | undefined;
}

/** A workload known without asking anybody. */
export type PlatformGrants = (name: string) => { vertical: string; scopes: ReadonlySet<string> } | undefined;

const token = <T>(name: string) => Symbol(name) as InjectionToken<T>;
export const PARTS = {
  directory: token<Directory>('directory'),
  revoked: token<RevokedCertificates>('revoked'),
  pools: token<BackendPools>('pools'),
  caller: token<ServiceCaller>('caller'),
  secrets: token<SecretChain>('secrets'),
  grants: token<PlatformGrants>('grants'),
  identity: token<ReturnType<typeof identityCalls>>('identity'),
  closures: token<AccessClosures>('closures'),
  environments: token<EnvironmentStates>('environments'),
  keys: token<KeySet>('keys'),
  tokens: token<TokenChecks>('tokens'),
  verifier: token<Verifier>('verifier'),
  relay: token<Relay>('relay'),
} as const;

/**
 * The bill of materials of a process, in layer order. The container makes and finds; it owns no shutdown, because it knows no order of
 * stopping: the code that resolves a part hands it to the process's disposal stack (house 20).
 */
export function wire(parts: WiringParts): DependencyContainer {
  const { bootstrap, clock, log, kv } = parts;
  const container = root.createChildContainer();
  const single = <T>(key: InjectionToken<T>, make: (from: DependencyContainer) => T) =>
    container.register(key, { useFactory: instanceCachingFactory(() => make(container)) });

  single(PARTS.directory, () => new Directory(directoryStore(kv), log));
  single(PARTS.revoked, () => new RevokedCertificates({ kv, log, now: () => clock.now() }));
  single(
    PARTS.pools,
    from =>
      new BackendPools(from.resolve(PARTS.directory), service => platformHost(service, bootstrap.domain), {
        log,
        limits: bootstrap.backends,
        revoked: from.resolve(PARTS.revoked),
      }),
  );
  single(PARTS.caller, from => {
    const caller = new ServiceCaller(from.resolve(PARTS.pools));
    for (const [service, local] of parts.locals) caller.addLocal(service, local);
    return caller;
  });
  single(PARTS.secrets, () => new SecretChain({ environment: parts.environment }));
  single(PARTS.grants, () => {
    const grants = workloadGrants(bootstrap.manifests);
    // Only the platform's own manifests are believed; a vertical's rights are asked of the identity service.
    return (name: string) => (grants.get(name)?.vertical === 'platform' ? grants.get(name) : undefined);
  });
  single(PARTS.identity, from => identityCalls(from.resolve(PARTS.caller), firstOf(parts.workloads)));
  single(PARTS.closures, from => {
    const { personScopes, workload } = from.resolve(PARTS.identity);
    return new AccessClosures({ live: liveReader(kv), personScopes, workload });
  });
  single(PARTS.environments, from => {
    const ask = environmentState(from.resolve(PARTS.caller), firstOf(parts.workloads));
    return new EnvironmentStates({ read: async key => (await kv.current([key]))[0] ?? null, ask });
  });
  single(
    PARTS.keys,
    from => new KeySet(parts.jwks ?? (() => from.resolve(PARTS.identity).jwks(from.resolve(PARTS.pools))), () => clock.now().getTime()),
  );
  const now = () => clock.now().getTime();
  const originOf = (host: string) => publicOrigin(host, bootstrap.edgePort);
  single(PARTS.tokens, () => {
    const claim = async (key: string, seconds: number) => (await kv.call('SET', key, '1', 'NX', 'EX', seconds)) === 'OK';
    return { claims: readSignedToken, possession: new DpopProofs({ claim, now }).check };
  });
  single(PARTS.verifier, from => {
    const { issuer: environmentOn } = from.resolve(PARTS.identity);
    const issuers = new Issuers({ now, originOf, environmentOn, system: originOf(platformHost('auth', bootstrap.domain)) });
    return new Verifier({
      keys: from.resolve(PARTS.keys),
      closures: from.resolve(PARTS.closures),
      workloads: from.resolve(PARTS.grants),
      issuers: parts.issuers ?? issuers.environmentOf,
      possession: from.resolve(PARTS.tokens).possession,
      now,
    });
  });
  single(
    PARTS.relay,
    from =>
      new Relay({
        log,
        deliver: deliverTo(deliveryTargets(from.resolve(PARTS.caller), service => parts.workloads.get(service) as Workload)),
      }),
  );
  return container;
}

function firstOf(workloads: ReadonlyMap<string, Workload>): Workload {
  const [first] = workloads.values();
  if (!first) throw new Error('a process without services has nothing to run');
  return first;
}
