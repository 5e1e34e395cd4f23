import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Logger, reasonOf } from '@platform/sdk';
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Manifest } from '../../base/manifest.ts';
import { findPlugins, type FoundPlugin } from './loader.ts';
import { type FailedPlugin, forgive, readVertical } from './plugin-intake.ts';

const LOOK_MS = 1_000;
/** A folder of more is looked at by its first ones. */
const MAX_FILES = 2_000;

export interface PluginWatchOptions {
  readonly directories: readonly string[];
  /** Those that run, or were given to somebody to run. */
  readonly known: readonly FoundPlugin[];
  readonly failed: FailedPlugin[];
  readonly start: (plugin: FoundPlugin) => Promise<void>;
  readonly clock?: Clock;
  readonly log: Pick<Logger, 'error' | 'warn'>;
  readonly progress: (text: string) => void;
}

/**
 * Folders under `PLATFORM_PLUGIN_DIRS` come up without a restart, each by itself: one that cannot be read is named, and read again when
 * anything in it has changed. A watcher of the operating system says nothing of what happens inside the folders of a folder, so they are
 * looked at.
 */
export class PluginWatch implements AsyncDisposable {
  readonly #options: PluginWatchOptions;
  readonly #running: Set<string>;
  readonly #manifests: Map<string, Manifest>;
  /** How a folder that does not run looked when it was read last. */
  readonly #looks = new Map<string, string>();
  readonly #timer: Disposable;
  #looking: Promise<void> = Promise.resolve();

  constructor(options: PluginWatchOptions) {
    this.#options = options;
    this.#running = new Set(options.known.map(({ directory }) => directory));
    this.#manifests = new Map(options.known.map(({ manifest }) => [manifest.id, manifest]));
    for (const { plugin } of options.failed) this.#looks.set(plugin, lookOf(plugin));
    this.#timer = (options.clock ?? systemClock).every(LOOK_MS, () => {
      this.#looking = this.#look().catch(error => options.log.error({ err: error }, 'the plugin folders cannot be looked at'));
      return this.#looking;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#timer[Symbol.dispose]();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const found = findPlugins(this.#options.directories);
    for (const directory of this.#looks.keys()) {
      if (found.includes(directory)) continue;
      this.#looks.delete(directory);
      forgive(this.#options.failed, directory);
    }
    for (const directory of found) {
      if (this.#running.has(directory)) continue;
      const look = lookOf(directory);
      if (this.#looks.get(directory) === look) continue;
      this.#looks.set(directory, look);
      await this.#read(directory);
    }
  }

  async #read(directory: string): Promise<void> {
    const { failed, start, log, progress } = this.#options;
    const plugin = await readVertical(directory, this.#manifests, failed);
    if (!plugin) {
      const reason = failed.find(fault => fault.plugin === directory)?.reason;
      log.error({ plugin: directory, reason }, 'a plugin folder cannot be read; it is read again when it changes');
      return progress(`! ${directory} is not running: ${reason}`);
    }
    const { id } = plugin.manifest;
    this.#running.add(directory);
    this.#manifests.set(id, plugin.manifest);
    progress(`Starting ${plugin.manifest.title}`);
    // It is tried on by its own process's life; a later plugin does not wait for it.
    void start(plugin).catch(error => {
      failed.push({ plugin: id, reason: reasonOf(error) });
      log.error({ plugin: id, reason: reasonOf(error) }, 'a plugin did not start; it is tried again');
    });
  }
}

/** Times and sizes of a folder's own files: anything that a person changes changes it. */
function lookOf(directory: string): string {
  try {
    return readdirSync(directory, { recursive: true, encoding: 'utf8' })
      .filter(name => !/(^|\/)(node_modules|\.git)(\/|$)/.test(name))
      .slice(0, MAX_FILES)
      .map(name => {
        const { mtimeMs, size } = statSync(join(directory, name), { throwIfNoEntry: false }) ?? {};
        return `${name} ${mtimeMs} ${size}`;
      })
      .join('\n');
  } catch {
    return '';
  }
}
