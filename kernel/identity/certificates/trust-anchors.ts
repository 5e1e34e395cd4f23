import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../../base/durable-file.ts';
import { Hierarchy, type HierarchyFiles, type HierarchyName, type IssuedLeaf } from './authority.ts';

const NAMES = {
  rootCertificate: 'root.crt',
  rootKey: 'root.key',
  intermediateCertificate: 'intermediate.crt',
  intermediateKey: 'intermediate.key',
} as const;

/** Public halves of both hierarchies: what every process may know. */
export interface TrustAnchors {
  readonly pq: { readonly root: string; readonly intermediate: string };
  readonly classical: { readonly root: string; readonly intermediate: string };
}

/** Both hierarchies with their signing keys: what only the certificate authority's process may hold. */
export interface Authority {
  readonly pq: Hierarchy;
  readonly classical: Hierarchy;
  /**
   * Writes down what was signed beside the authority's service, which has none of it in its log yet: one line each in `ca/minted.jsonl`.
   */
  readonly note: (leaf: Pick<IssuedLeaf, 'chain'>) => void;
}

const STAGING = 'ca-new-';
/** Folders that only a platform that was started before leaves behind. */
const DATA = ['pg', 'kv', 'keys', 'audit', 'certificates', 'verticals'];
const DEFAULT_VALIDITY = { rootDays: 3650, intermediateDays: 1825 };

const directoryOf = (home: string, name: HierarchyName) => join(home, ...(name === 'classical' ? ['classical'] : []));
const filesOf = (home: string, name: HierarchyName) =>
  Object.entries(NAMES).map(([member, file]) => ({ member, path: join(directoryOf(home, name), file) }));

/**
 * Opens the certificate authority's files under `{dataDir}/ca`, or makes all of them where nothing of a platform is there yet. A part that
 * is missing beside any other, or beside data, stops the boot: a silently made second root would strand every machine that trusts the first
 * (G-ACME-01).
 */
export async function openAuthority(dataDir: string, validity = DEFAULT_VALIDITY): Promise<Authority> {
  const home = join(dataDir, 'ca');
  const paths = [...filesOf(home, 'pq'), ...filesOf(home, 'classical')].map(({ path }) => path);
  if (!paths.some(path => existsSync(path))) {
    refuseBesideData(dataDir, home);
    await makeAuthority(dataDir, home, validity);
  }
  return readAuthority(dataDir);
}

/** Opens an authority that must be there; makes nothing. Throws with the names of what is missing. */
export async function readAuthority(dataDir: string): Promise<Authority> {
  const home = join(dataDir, 'ca');
  const missing = [...filesOf(home, 'pq'), ...filesOf(home, 'classical')].map(({ path }) => path).filter(path => !existsSync(path));
  if (missing.length > 0)
    throw new Error(
      `The certificate authority is incomplete: ${missing.join(', ')} missing. Restore it from a backup of ${home}; nothing is made anew beside what is there, and nothing was changed.`,
    );
  return {
    pq: await readHierarchy(home, 'pq'),
    classical: await readHierarchy(home, 'classical'),
    note: ({ chain }) => appendFileSync(join(home, 'minted.jsonl'), `${JSON.stringify({ chain })}\n`, { mode: 0o600 }),
  };
}

function readHierarchy(home: string, name: HierarchyName): Promise<Hierarchy> {
  const files = Object.fromEntries(
    filesOf(home, name).map(({ member, path }) => [member, readFileSync(path, 'utf8')]),
  ) as unknown as HierarchyFiles;
  return Hierarchy.open(name, files).catch(cause => {
    throw new Error(
      `The certificate authority in ${directoryOf(home, name)} cannot be used. Restore the folder from a backup; nothing was changed.`,
      { cause },
    );
  });
}

function refuseBesideData(dataDir: string, home: string): void {
  const found = DATA.map(name => join(dataDir, name)).find(
    path => existsSync(path) && (!statSync(path).isDirectory() || readdirSync(path).length > 0),
  );
  if (found !== undefined)
    throw new Error(
      `The certificate authority ${home} is missing beside ${found}, which was made under it. Restore it from a backup, or name an empty folder in PLATFORM_DATA_DIR; nothing was changed.`,
    );
}

/**
 * Both hierarchies are made beside their place and moved there when they are whole: a crash leaves none or all of them, and nothing is
 * written over.
 */
async function makeAuthority(dataDir: string, home: string, validity: { rootDays: number; intermediateDays: number }): Promise<void> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(dataDir).filter(entry => entry.startsWith(STAGING)))
    rmSync(join(dataDir, name), { recursive: true, force: true });
  const staging = mkdtempSync(join(dataDir, STAGING));
  try {
    for (const name of ['pq', 'classical'] as const) {
      const hierarchy = await Hierarchy.create(name, validity);
      for (const { member, path } of filesOf(staging, name))
        writeDurably(path, hierarchy.files[member as keyof HierarchyFiles], path.endsWith('.key') ? 0o600 : 0o644);
    }
    // Takes the place of an empty folder and of no other.
    renameSync(staging, home);
  } catch (error) {
    rmSync(staging, { recursive: true, force: true });
    throw error;
  }
}

export const anchorsOf = (authority: Authority): TrustAnchors => ({
  pq: { root: authority.pq.files.rootCertificate, intermediate: authority.pq.files.intermediateCertificate },
  classical: { root: authority.classical.files.rootCertificate, intermediate: authority.classical.files.intermediateCertificate },
});
