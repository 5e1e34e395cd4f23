import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../base/durable-file.ts';
import { Hierarchy, type HierarchyFiles, type HierarchyName } from './authority.ts';

const NAMES = { rootCertificate: 'root.crt', rootKey: 'root.key', intermediateCertificate: 'intermediate.crt', intermediateKey: 'intermediate.key' } as const;

/** Public halves of both hierarchies: what every process may know. */
export interface TrustAnchors {
  readonly pq: { readonly root: string; readonly intermediate: string };
  readonly classical: { readonly root: string; readonly intermediate: string };
}

/** Both hierarchies with their signing keys: what only the certificate authority's process may hold. */
export interface Authority {
  readonly pq: Hierarchy;
  readonly classical: Hierarchy;
  readonly directory: string;
}

const directoryOf = (dataDir: string, name: HierarchyName) => join(dataDir, 'ca', ...(name === 'classical' ? ['classical'] : []));

/**
 * Opens the certificate authority's files under `{dataDir}/ca`, making them on the first start, before anything else exists.
 * A certificate without its key stops the boot: a silently made second root would strand every machine that trusts the first (G-ACME-01).
 */
export async function openAuthority(dataDir: string, validity = { rootDays: 3650, intermediateDays: 1825 }): Promise<Authority> {
  const [pq, classical] = [await openHierarchy(dataDir, 'pq', validity), await openHierarchy(dataDir, 'classical', validity)];
  return { pq, classical, directory: join(dataDir, 'ca') };
}

async function openHierarchy(dataDir: string, name: HierarchyName, validity: { rootDays: number; intermediateDays: number }): Promise<Hierarchy> {
  const directory = directoryOf(dataDir, name);
  const paths = Object.entries(NAMES).map(([member, file]) => ({ member, path: join(directory, file) }));
  const missing = paths.filter(({ path }) => !existsSync(path));
  if (missing.length === 0) {
    return Hierarchy.open(name, Object.fromEntries(paths.map(({ member, path }) => [member, readFileSync(path, 'utf8')])) as unknown as HierarchyFiles);
  }
  if (missing.length < paths.length && existsSync(join(directory, NAMES.rootCertificate))) {
    throw new Error(
      `The certificate authority is incomplete: ${missing.map(({ path }) => path).join(', ')} missing beside an existing root. Restore it from a backup; nothing is made anew over an existing root.`,
    );
  }
  const hierarchy = await Hierarchy.create(name, validity);
  // The root certificate goes last: its presence says that the four files are whole.
  for (const { member, path } of [...paths].reverse()) writeDurably(path, hierarchy.files[member as keyof HierarchyFiles], path.endsWith('.key') ? 0o600 : 0o644);
  return hierarchy;
}

export const anchorsOf = (authority: Authority): TrustAnchors => ({
  pq: { root: authority.pq.files.rootCertificate, intermediate: authority.pq.files.intermediateCertificate },
  classical: { root: authority.classical.files.rootCertificate, intermediate: authority.classical.files.intermediateCertificate },
});
