import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** Made by the build, read by tests. */
const BUILT = ['console/dist', 'signin/dist'];

/**
 * The checkout as it is, in a folder that may be broken: never a file of the checkout itself is changed. Packages from npm are linked;
 * those of the repository are linked to the copy's own, or its tests would test the checkout.
 */
export class WorkingCopy implements Disposable {
  readonly root = mkdtempSync(join(tmpdir(), 'platform-mutations-'));
  /** Folder for what tests leave behind when they are killed. */
  readonly scratch = mkdtempSync(join(tmpdir(), 'platform-mutated-'));
  readonly #gone = () => this[Symbol.dispose]();

  constructor() {
    process.on('exit', this.#gone);
    const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
      cwd: ROOT,
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    for (const file of files.split('\0').filter(name => name !== '' && existsSync(join(ROOT, name)))) {
      mkdirSync(dirname(join(this.root, file)), { recursive: true });
      cpSync(join(ROOT, file), join(this.root, file));
    }
    for (const folder of BUILT)
      if (existsSync(join(ROOT, folder))) cpSync(join(ROOT, folder), join(this.root, folder), { recursive: true });
    this.#linkPackages();
  }

  /** Runs `work` with another text in a file, and puts the old one back. */
  async with<T>(file: string, text: string, work: () => Promise<T>): Promise<T> {
    const path = join(this.root, file);
    const before = readFileSync(path, 'utf8');
    writeFileSync(path, text);
    try {
      return await work();
    } finally {
      writeFileSync(path, before);
    }
  }

  [Symbol.dispose](): void {
    process.off('exit', this.#gone);
    for (const folder of [this.root, this.scratch]) rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  #linkPackages(): void {
    const [from, to] = [join(ROOT, 'node_modules'), join(this.root, 'node_modules')];
    mkdirSync(join(to, '@platform'), { recursive: true });
    for (const name of readdirSync(from).filter(entry => entry !== '@platform')) symlinkSync(join(from, name), join(to, name));
    for (const name of readdirSync(join(from, '@platform'))) {
      if (!lstatSync(join(from, '@platform', name)).isSymbolicLink()) continue;
      // Relative to the folder of links: the same words lead into the copy.
      symlinkSync(readlinkSync(join(from, '@platform', name)), join(to, '@platform', name));
    }
  }
}
