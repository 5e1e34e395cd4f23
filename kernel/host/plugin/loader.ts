import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { AnyContract, AnyPlugin } from '@platform/sdk';
import { type Manifest, manifestOf } from '../../base/manifest.ts';

/** A plugin on disk: what its contract says, and where its code begins, which is not imported yet. */
export interface FoundPlugin {
  readonly directory: string;
  readonly manifest: Manifest;
  readonly entry: string;
}

interface PackageJson {
  readonly name?: string;
  readonly version?: string;
  readonly platform?: { readonly contract?: string; readonly plugin?: string };
}

const require = createRequire(import.meta.url);
const hostRoot = fileURLToPath(new URL('../../../', import.meta.url));
let hooked = false;

/** `@platform/*` of every plugin, wherever it lives, resolves to the host's own copy: one SDK identity (day-one, Plugins). */
export function shareHostPackages(): void {
  if (hooked) return;
  hooked = true;
  registerHooks({
    resolve(specifier, context, next) {
      const foreign = context.parentURL?.startsWith('file:') && !fileURLToPath(context.parentURL).startsWith(hostRoot);
      if (foreign && specifier.startsWith('@platform/')) return next(pathToFileURL(require.resolve(specifier)).href, context);
      return next(specifier, context);
    },
  });
}

/**
 * Plugin folders under the given ones: each is a plugin, or a parent of plugins. Folders without a platform entry are passed over; one
 * whose package.json cannot be read may be a plugin, and {@link readPlugin} says what is wrong with it.
 */
export function findPlugins(directories: readonly string[]): string[] {
  return directories
    .filter(directory => directory !== '' && existsSync(directory))
    .flatMap(directory => {
      const absolute = resolve(directory);
      if (mayBePlugin(absolute)) return [absolute];
      return readdirSync(absolute)
        .map(name => join(absolute, name))
        .filter(path => statSync(path, { throwIfNoEntry: false })?.isDirectory() && mayBePlugin(path))
        .sort();
    });
}

function mayBePlugin(directory: string): boolean {
  try {
    return packageOf(directory)?.platform !== undefined;
  } catch {
    return true;
  }
}

/** Where a plugin's code begins, as its package.json says. Throws with what is wrong with that. */
export function entryOf(directory: string): string {
  const { contract, plugin } = packageOf(directory)?.platform ?? {};
  if (!contract || !plugin) throw new Error(`${directory}/package.json has no "platform": { "contract", "plugin" }`);
  return join(directory, plugin);
}

/** Imports a plugin's contract, which runs its code: somebody else's is read behind walls. Throws with what is wrong with the folder. */
export async function readPlugin(directory: string): Promise<FoundPlugin & { readonly contract: AnyContract }> {
  shareHostPackages();
  const entry = entryOf(directory);
  const described = packageOf(directory);
  const contractPath = join(directory, described?.platform?.contract ?? '');
  const module = (await import(pathToFileURL(contractPath).href)) as Record<string, unknown>;
  const contract = Object.values(module).find(isContract);
  if (!contract) throw new Error(`${contractPath} exports no contract`);
  return { directory, contract, manifest: manifestOf(contract, described?.version ?? '0.0.0'), entry };
}

/** Imports the plugin's code and requires that it speaks of the very contract that was checked (E060, drift). */
export async function importPlugin(found: FoundPlugin): Promise<AnyPlugin> {
  const module = (await import(pathToFileURL(found.entry).href)) as { default?: AnyPlugin };
  const plugin = module.default;
  if (!plugin || typeof plugin.setup !== 'function') throw new Error(`${found.entry} has no default export made by definePlugin`);
  if (JSON.stringify(manifestOf(plugin.contract, found.manifest.version)) !== JSON.stringify(found.manifest))
    throw new Error(`E060 ${found.manifest.id}: the code carries another contract than the one that was checked`);
  const undeclared = Object.values(plugin.uses as Record<string, AnyContract>)
    .map(({ base }) => base.id)
    .filter(id => ![found.manifest.uses, ...Object.values(found.manifest.workloads)].some(needs => id in needs));
  if (undeclared.length > 0)
    throw new Error(`E022 ${found.manifest.id}: calls ${undeclared.join(', ')} without naming it in the contract's \`uses\``);
  return plugin;
}

function packageOf(directory: string): PackageJson | undefined {
  const path = join(directory, 'package.json');
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as PackageJson;
  } catch (cause) {
    throw new Error(`${path} cannot be read`, { cause });
  }
}

function isContract(value: unknown): value is AnyContract {
  return typeof value === 'object' && value !== null && 'base' in value && 'routes' in value && 'actions' in value;
}
