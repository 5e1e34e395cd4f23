import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** One step towards trust in a root: a command of the system, and for which store. */
export interface TrustStep {
  readonly store: string;
  readonly command: readonly string[];
}
/** What of a machine decides how its stores are filled. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly asRoot: boolean;
  readonly has: (path: string) => boolean;
  readonly list: (path: string) => readonly string[];
}
export interface TrustOutcome {
  readonly store: string;
  readonly done: boolean;
  readonly why: string;
}

const NAME = 'platform-root';
const LONGEST_MS = 30_000;

/** This machine. */
export const thisMachine = (): Machine => ({
  platform: process.platform,
  home: process.env['HOME'] ?? process.env['USERPROFILE'] ?? '',
  asRoot: process.getuid?.() === 0,
  has: existsSync,
  list: path => (existsSync(path) ? readdirSync(path) : []),
});

/** The steps for the stores that a machine has: the system's, and those of browsers that keep their own (CA-009). */
export function trustSteps(root: string, { platform, home, asRoot, has, list }: Machine): TrustStep[] {
  const step = (store: string, ...command: string[]): TrustStep => ({ store, command });
  if (platform === 'darwin')
    return [
      step(
        'login keychain',
        'security',
        'add-trusted-cert',
        '-r',
        'trustRoot',
        '-k',
        join(home, 'Library/Keychains/login.keychain-db'),
        root,
      ),
    ];
  if (platform === 'win32') return [step('current user', 'certutil', '-user', '-addstore', 'Root', root)];
  const elevated = asRoot ? [] : ['sudo', '-n'];
  const system = has('/usr/local/share/ca-certificates')
    ? [
        step('system', ...elevated, 'install', '-m', '644', root, `/usr/local/share/ca-certificates/${NAME}.crt`),
        step('system', ...elevated, 'update-ca-certificates'),
      ]
    : has('/etc/pki/ca-trust/source/anchors')
      ? [
          step('system', ...elevated, 'install', '-m', '644', root, `/etc/pki/ca-trust/source/anchors/${NAME}.crt`),
          step('system', ...elevated, 'update-ca-trust'),
        ]
      : [];
  const firefox = [join(home, '.mozilla/firefox'), join(home, 'snap/firefox/common/.mozilla/firefox')].flatMap(folder =>
    list(folder).map(profile => join(folder, profile)),
  );
  const browsers = [join(home, '.pki/nssdb'), ...firefox].filter(folder => has(join(folder, 'cert9.db')));
  return [...system, ...browsers.map(folder => step(folder, 'certutil', '-d', `sql:${folder}`, '-A', '-t', 'C,,', '-n', NAME, '-i', root))];
}

/** Takes the steps, each as far as it goes: one that fails keeps no other from being taken, and is said. */
export function takeSteps(steps: readonly TrustStep[]): TrustOutcome[] {
  return steps.map(({ store, command: [program = '', ...args] }) => {
    const { status, error, stderr } = spawnSync(program, args, {
      encoding: 'utf8',
      timeout: LONGEST_MS,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const why = error
      ? (error as NodeJS.ErrnoException).code === 'ENOENT'
        ? `${program} is not installed`
        : error.message
      : (stderr.trim().split('\n').at(-1) ?? '');
    return { store, done: status === 0, why: status === 0 ? '' : why || `${program} ended with ${status}` };
  });
}
