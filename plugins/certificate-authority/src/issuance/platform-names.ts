import { platformLabel } from '@platform/sdk';

/** Names that belong to the platform itself, and whose they are (H-01, G-ACME-06, G-K-15). */
export class PlatformNames {
  readonly #domain: string;
  readonly #hostsOf: (workload: string) => readonly string[];

  /** `hostsOf`: labels a workload answers on beside its own name. */
  constructor(domain: string, hostsOf: (workload: string) => readonly string[]) {
    this.#domain = domain;
    this.#hostsOf = hostsOf;
  }

  /** The label of `{label}.ops.sys.{domain}`. */
  labelOf(name: string): string | undefined {
    const label = platformLabel(name, this.#domain);
    return label !== undefined && /^[a-z0-9-]+$/.test(label) ? label : undefined;
  }

  /** Whether nobody but a workload may have it: the platform's plane, and names as deep as those of tenants' applications. */
  isReserved(name: string): boolean {
    const bare = name.replace(/^\*\./, '');
    if (bare === this.#domain || bare === `sys.${this.#domain}` || bare.endsWith(`.sys.${this.#domain}`)) return bare !== 'localhost';
    if (!bare.endsWith(`.${this.#domain}`)) return false;
    const labels = bare.slice(0, -this.#domain.length - 1).split('.').length + (name.startsWith('*.') ? 1 : 0);
    return labels >= 3;
  }

  /** Platform names belong to the workload of their label; the ingress answers for every name a browser may ask for. */
  owns(workload: string, name: string): boolean {
    if (workload === 'proxy') return true;
    const label = this.labelOf(name);
    return label !== undefined && (label === workload || this.#hostsOf(workload).includes(label));
  }
}
