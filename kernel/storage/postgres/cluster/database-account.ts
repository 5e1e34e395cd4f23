import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import { canReach } from '../../can-reach.ts';
import { StorageError } from '../../storage-error.ts';

/**
 * The operating-system identity a database process runs with. Not root: our own. Root: `postgres`, else `nobody`, else our own
 * inside a user namespace where it is called `nobody`, which is what is left when the programs lie below a folder closed to others.
 */
export interface DatabaseAccount {
  readonly kind: 'own' | 'user' | 'namespace';
  /** Options for `spawn`. */
  readonly spawn: { readonly uid?: number; readonly gid?: number };
  /** Put before the program. */
  readonly prefix: readonly string[];
}

const OWN: DatabaseAccount = { kind: 'own', spawn: {}, prefix: [] };
const NAMESPACE: DatabaseAccount = { kind: 'namespace', spawn: {}, prefix: ['unshare', '--user', '--map-user=65534', '--map-group=65534'] };

/**
 * Chooses the account for a database in `home`. A home that exists keeps its owner. As root with a `user` account, `dataDir` gets
 * mode 0711 in place of 0700: its own folders stay private, but the account must be able to walk through it.
 */
export function databaseAccount(dataDir: string, home: string, programs: readonly string[]): DatabaseAccount {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  if (process.getuid?.() !== 0) return own();
  const owner = statSync(home, { throwIfNoEntry: false });
  const users = owner === undefined ? knownUsers() : owner.uid === 0 ? [] : [{ uid: owner.uid, gid: owner.gid }];
  for (const user of users) {
    if (![dirname(dataDir), ...programs].every(path => canReach(path, user))) continue;
    chmodSync(dataDir, statSync(dataDir).mode | 0o011);
    return { kind: 'user', spawn: user, prefix: [] };
  }
  if ((owner === undefined || owner.uid === 0) && namespacesWork()) return NAMESPACE;
  throw new StorageError(
    'no_database_account',
    `as root, the database in ${home} needs an unprivileged user that can read ${programs.join(', ')}`,
    {
      fix: 'run the platform as an ordinary user, or install it and its data below folders that others may enter (mode 0711)',
    },
  );
}

/**
 * PostgreSQL asks the system for the name of whoever runs it. A user id that a container was given has none: inside a namespace it is
 * called `nobody`.
 */
function own(): DatabaseAccount {
  if (ownName() !== undefined) return OWN;
  if (namespacesWork()) return NAMESPACE;
  throw new StorageError(
    'no_database_account',
    `the user id ${process.getuid?.()} has no name on this system, and the packaged database needs one`,
    {
      fix: 'run the platform as a user of /etc/passwd, or point PLATFORM_DB_URL at a PostgreSQL of your own',
    },
  );
}

/** Name of the user that runs this process, where it has one. */
export function ownName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}

/** Makes `path` a folder that only the account (and root) can enter. */
export function privateDirectory(path: string, account: DatabaseAccount): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  giveTo(path, account);
  chmodSync(path, 0o700);
}

/** Hands a file or folder to the account. */
export function giveTo(path: string, account: DatabaseAccount): void {
  const { uid, gid } = account.spawn;
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}

/** Environment of a database process: nothing of the host's, which may hold secrets. */
export const DATABASE_ENVIRONMENT: NodeJS.ProcessEnv = { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };

function knownUsers(): { uid: number; gid: number }[] {
  const lines = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'));
  return ['postgres', 'nobody'].flatMap(name => {
    const [, , uid, gid] = lines.find(line => line[0] === name) ?? [];
    return Number(uid) > 0 && Number(gid) > 0 ? [{ uid: Number(uid), gid: Number(gid) }] : [];
  });
}

function namespacesWork(): boolean {
  const [command, ...args] = [...NAMESPACE.prefix, 'true'];
  return spawnSync(command as string, args, { stdio: 'ignore', timeout: 5_000 }).status === 0;
}
