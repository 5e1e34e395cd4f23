import { type Logger, platformHost, platformLabel } from '@platform/sdk';
import type { Clock } from '../base/clock.ts';
import type { DisposalStack } from '../base/disposal-stack.ts';
import type { Manifest } from '../base/manifest.ts';
import type { RevokedCertificates } from '../identity/certificates/revoked-certificates.ts';
import { type CredentialKind, type Mint, Workload } from '../identity/workload.ts';
import type { Bootstrap } from './boot/bootstrap.ts';

const RENEWAL_CHECK_MS = 3_600_000;

/** The identities of one process: each service's own, and those that its contract names beside it. */
export class WorkloadSet {
  readonly byName = new Map<string, Workload>();
  readonly #bootstrap: Bootstrap;

  constructor(bootstrap: Bootstrap) {
    this.#bootstrap = bootstrap;
  }

  /** Opens those of some services from their files, or has them made. */
  async open(manifests: readonly Manifest[], mint: Mint): Promise<void> {
    for (const { id, hosts, workloads } of manifests) {
      await this.#open(id, [id, ...hosts], ['client', 'database', 'listener'], mint);
      for (const name of Object.keys(workloads)) await this.#open(`${id}-${name}`, [id], ['client'], mint);
    }
  }

  /** Renews certificates that are due, and at once a listener's that was revoked: its own identity still stands. */
  keepFresh({ owned, clock, revoked, log }: { owned: DisposalStack; clock: Clock; revoked: RevokedCertificates; log: Logger }): void {
    const each = async (what: (workload: Workload) => Promise<unknown>, message: string) => {
      for (const workload of this.byName.values())
        await what(workload).catch(error => log.error({ workload: workload.name, err: error }, message));
    };
    owned.own(
      clock.every(RENEWAL_CHECK_MS, () => each(workload => workload.renewDue(Date.now()), 'certificate renewal failed; the old one stays')),
    );
    const renewed = revoked.onRevoked(
      () =>
        void each(
          workload => workload.renewListener(thumbprint => revoked.has(thumbprint)),
          'a revoked listener certificate could not be replaced',
        ),
    );
    owned.own(renewed);
  }

  /** Of the service that `name` asks for, by its host or by its id. */
  listenerOf(name: string, manifests: readonly Manifest[]): Workload | undefined {
    const label = platformLabel(name, this.#bootstrap.domain) ?? name;
    return this.byName.get(manifests.find(({ id, hosts }) => id === label || hosts.includes(label))?.id ?? label);
  }

  async #open(name: string, labels: readonly string[], kinds: readonly CredentialKind[], mint: Mint): Promise<void> {
    const { dataDir, anchors, pqMode, domain } = this.#bootstrap;
    const hostnames = labels.map(label => platformHost(label, domain));
    this.byName.set(name, await Workload.open({ name, directory: `${dataDir}/keys`, anchors, pqMode, kinds, mint, hostnames }));
  }
}
