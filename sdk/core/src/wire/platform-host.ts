/** Where the platform's own services answer: `{label}.ops.sys.{domain}` (G-K-15). */
export const platformZone = (domain: string): string => `ops.sys.${domain}`;

/** The host of a service, by its label. */
export const platformHost = (label: string, domain: string): string => `${label}.${platformZone(domain)}`;

/** The label of one of the platform's own hosts; undefined for every other. */
export function platformLabel(host: string, domain: string): string | undefined {
  const end = `.${platformZone(domain)}`;
  return host.endsWith(end) ? host.slice(0, -end.length) : undefined;
}
