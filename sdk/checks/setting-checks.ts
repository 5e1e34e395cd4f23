import type { Manifest } from '@platform/sdk';
import type { AddFinding } from './finding.ts';

/** Settings, keys, and the tables that go with an environment (E060 to E062, E080, E081). */
export function checkSettings(manifest: Manifest, known: ReadonlyMap<string, Manifest>, add: AddFinding): void {
  const platform = manifest.vertical === 'platform';
  const prefix = platform ? 'PLATFORM_' : `${manifest.vertical.toUpperCase()}_`;
  const ends = { ...manifest.onEnvironmentDeleted?.purge, ...manifest.onEnvironmentDeleted?.keep };
  for (const [table, noun] of Object.entries(ends)) {
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(table))
      add(
        'E080',
        `onEnvironmentDeleted.${table}`,
        `"${table}" is no table of this service.`,
        'Name a table of the own schema, without a schema before it.',
      );
    if (noun.trim() === '')
      add(
        'E080',
        `onEnvironmentDeleted.${table}`,
        'Nothing says what its rows are, or why they stay.',
        "Write a noun such as 'loans', or the reason.",
      );
  }

  for (const table of manifest.rowSecurity ?? [])
    if (!(table in ends))
      add(
        'E081',
        `rowSecurity.${table}`,
        `Nothing says what becomes of the rows of "${table}" when their environment is deleted.`,
        'Name it under onEnvironmentDeleted too; only tables with a column env_id can be held to an environment.',
      );

  for (const [name, schema] of Object.entries(
    (manifest.config as { properties?: Record<string, { env?: string }> } | undefined)?.properties ?? {},
  )) {
    if (!schema.env?.startsWith(prefix))
      add(
        'E060',
        `config.${name}.env`,
        'The setting names no environment variable of its own.',
        `Add env: '${prefix}${manifest.id.toUpperCase()}_…'.`,
      );
  }
  for (const [name, key] of Object.entries(manifest.keys ?? {})) {
    if (!['seal', 'seeds'].includes(key.use))
      add('E061', `keys.${name}.use`, `'${String(key.use)}' is no use of a key.`, "Use 'seal', or 'seeds' for a secret of several lines.");
    if (!key.description)
      add(
        'E061',
        `keys.${name}.description`,
        'Nobody can tell what the key is for.',
        'Say it in a few words; the list of settings shows it.',
      );
    for (const setting of [key.documented, key.previous])
      if (setting !== undefined && !setting.startsWith(prefix))
        add('E061', `keys.${name}`, `The setting ${setting} is not one of this plugin's own.`, `Start it with '${prefix}'.`);
    if (key.file !== undefined && !/^[a-z0-9][a-z0-9.-]{0,63}$/.test(key.file))
      add('E061', `keys.${name}.file`, `"${key.file}" is no name of a file.`, 'Use a-z, 0-9, full stops and hyphens, or leave it out.');
  }
  checkFolders(manifest, known, add);
}

/** Folders of the kernel's own below the data folder. */
const KERNEL_FOLDERS = ['ca', 'captain', 'files', 'keys', 'kv', 'logs', 'pg', 'plugins', 'releases', 'run', 'verticals'];

/** A folder has one owner (E062). */
function checkFolders(manifest: Manifest, known: ReadonlyMap<string, Manifest>, add: AddFinding): void {
  for (const name of manifest.folders ?? []) {
    const where = `folders.${name}`;
    if (manifest.vertical !== 'platform')
      add('E062', where, 'Only a service of the platform names its folders.', 'Leave it out and use `ctx.files.directory()`.');
    if (!/^[a-z][a-z0-9-]{0,30}$/.test(name)) add('E062', where, `"${name}" is no name of a folder.`, 'Use a-z, 0-9 and hyphens.');
    const owner = KERNEL_FOLDERS.includes(name)
      ? 'the kernel'
      : [...known.values()].find(({ id, folders }) => id !== manifest.id && folders?.includes(name))?.id;
    if (owner !== undefined) add('E062', where, `The folder "${name}" belongs to ${owner}.`, 'Choose another name.');
  }
}
