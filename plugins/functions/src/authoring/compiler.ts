import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Language = 'assemblyscript' | 'c' | 'rust';
export interface Compiler {
  /** The source that `new` writes, as function.json names it. */
  readonly source: string;
  /** What is not there and how it is got; nothing when all of it is there. */
  missing(folder: string): string | undefined;
  /** Throws an Error with what the compiler said. */
  compile(order: { readonly folder: string; readonly source: string; readonly name: string; readonly output: string }): void;
}

const RUST_TARGET = 'wasm32-unknown-unknown';

/** What makes modules of sources: each language's own compiler, as the author has it. */
export const COMPILERS: Readonly<Record<Language, Compiler>> = {
  assemblyscript: {
    source: 'assembly/index.ts',
    missing: folder => (assemblyScript(folder) ? undefined : `AssemblyScript is not installed in ${folder}: run \`npm install\` there.`),
    compile: ({ folder, source, output }) =>
      called(folder, process.execPath, [assemblyScript(folder) as string, source, '--outFile', output, '--runtime', 'stub', '--optimize']),
  },
  c: {
    source: 'function.c',
    missing: () => (answers('clang', '--version') ? undefined : 'There is no clang on the PATH. Install clang and lld, 16 or newer.'),
    compile: ({ folder, source, output }) =>
      called(folder, 'clang', [
        '--target=wasm32',
        '-O2',
        '-Wall',
        '-nostdlib',
        '-ffreestanding',
        '-Wl,--no-entry',
        '-Wl,--strip-all',
        '-o',
        output,
        source,
      ]),
  },
  rust: {
    source: 'src/lib.rs',
    missing: () => {
      if (!answers('cargo', '--version')) return 'There is no cargo on the PATH. Install Rust.';
      const root = answers('rustc', '--print', 'sysroot')?.trim() ?? '';
      return existsSync(join(root, 'lib', 'rustlib', RUST_TARGET))
        ? undefined
        : `Rust has no target ${RUST_TARGET} here: run \`rustup target add ${RUST_TARGET}\`.`;
    },
    compile: ({ folder, name, output }) => {
      called(folder, 'cargo', ['build', '--quiet', '--release', '--target', RUST_TARGET]);
      copyFileSync(join(folder, 'target', RUST_TARGET, 'release', `${name.replaceAll('-', '_')}.wasm`), output);
    },
  },
};
export const LANGUAGES = Object.keys(COMPILERS) as Language[];

/** The compiler of AssemblyScript: the author's own, or the one that the platform is tested with. */
function assemblyScript(folder: string): string | undefined {
  for (const from of [join(folder, 'package.json'), fileURLToPath(import.meta.url)]) {
    try {
      return createRequire(from).resolve('assemblyscript/bin/asc.js');
    } catch {
      // Looked for in the next place.
    }
  }
  return undefined;
}

/** What a program prints; nothing when it is not there or fails. */
function answers(program: string, ...args: string[]): string | undefined {
  const { status, stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? stdout : undefined;
}

function called(folder: string, program: string, args: readonly string[]): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd: folder, encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${stderr}${stdout}`.trim() || `${program} ended with ${status}.`);
}
