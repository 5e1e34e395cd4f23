import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyDecl, KeySeeds, SealedBox as Box, Sql } from '@platform/sdk';
import type { Manifest } from '../../base/manifest.ts';
import { SealedBox } from '../../secrets/sealed-box.ts';
import { type SecretChain, withSecret } from '../../secrets/secret-chain.ts';
import type { Migration } from '../../storage/schema/migrations.ts';
import { readOrCreateSecret } from '../../storage/private-file.ts';
import { type KeySetting, type KeySettings, keyVariables } from './key-settings.ts';

/**
 * Which key the data of a service rest on, by a name that tells nothing of it. It is beside the data, so that it is there exactly when they
 * are.
 */
export const KEY_MIGRATIONS: readonly Migration[] = [
  {
    name: 'kernel_keys_1',
    sql: 'create table service_keys (name text primary key, kid text not null, since timestamptz not null default now());\n',
  },
  // The key under which everything lies that was sealed for long.
  { name: 'kernel_keys_2', sql: 'alter table service_keys add column resealed text;\n' },
];

const KEY = /^[A-Za-z0-9+/]{43}=$/;

export interface ServiceKeyParts {
  readonly manifest: Manifest;
  readonly settings: KeySettings;
  readonly dataDir: string;
  readonly secrets: Pick<SecretChain, 'read'>;
  readonly sql: Sql;
}

/**
 * The keys of a service. One that no setting names is kept in a private file, which is made while no data rest on it, and never again: a
 * key that is missing, cannot be read or is not the one that sealed the data keeps the service from starting, and the message says which
 * file or setting it is.
 */
export async function openKeys(parts: ServiceKeyParts): Promise<Readonly<Record<string, Box | KeySeeds>>> {
  const keys: Record<string, Box | KeySeeds> = {};
  for (const [name, declared] of Object.entries(parts.manifest.keys)) keys[name] = await openKey(parts, name, declared);
  return keys;
}

async function openKey(
  { manifest, settings, dataDir, secrets, sql }: ServiceKeyParts,
  name: string,
  declared: KeyDecl,
): Promise<Box | KeySeeds> {
  const setting: KeySetting = settings[name] ?? {
    variable: keyVariables(manifest, name, declared).variable,
    value: undefined,
    previous: [],
  };
  const [record] = await sql<{ kid: string }[]>`select kid from service_keys where name = ${name}`;
  const file = join(dataDir, 'keys', declared.file ?? `${manifest.id}-${name}.key`);
  if (setting.value === undefined && !existsSync(file)) {
    if (record !== undefined)
      throw new Error(
        `The key ${file} is missing, and the data of ${manifest.id} rest on it. Restore the file from a backup, or name the key in ${setting.variable}; nothing is made in its place.`,
      );
    readOrCreateSecret(file, () => randomBytes(32).toString('base64'));
  }
  const source = setting.value ?? `file://${file}`;
  const read = async () => (KEY.test(source) ? Buffer.from(source) : await secrets.read(source));
  const from = KEY.test(source) ? setting.variable : setting.value === undefined ? file : `${setting.variable} (${source})`;
  const unreadable = () =>
    new Error(`${from} holds no key of 32 bytes in base64 that only its owner can read, and ${manifest.id} does not start without it.`);
  const text = await read();
  if (text === undefined) throw unreadable();
  if (declared.use === 'seeds') {
    await remember(
      sql,
      name,
      await withSecret(text, async secret => createHash('sha256').update(secret).digest('hex').slice(0, 8)),
      record?.kid,
    );
    return { read };
  }
  const previous = await Promise.all(
    setting.previous.map(async each => {
      const older = KEY.test(each) ? Buffer.from(each) : await secrets.read(each);
      if (older === undefined)
        throw new Error(
          `${keyVariables(manifest, name, declared).previous} names ${KEY.test(each) ? 'a key' : each}, which cannot be read.`,
        );
      return withSecret(older, decoded);
    }),
  );
  const key = await withSecret(text, decoded);
  if ([key, ...previous].some(({ byteLength }) => byteLength !== 32)) throw unreadable();
  const box = new SealedBox([key, ...previous]);
  const known = [box.kid, ...previous.map(each => new SealedBox([each]).kid)];
  if (record !== undefined && !known.includes(record.kid))
    throw new Error(
      `${from} is not the key that the data of ${manifest.id} rest on. Put that one back, or name it in ${
        keyVariables(manifest, name, declared).previous
      } beside the new one.`,
    );
  await remember(sql, name, box.kid, record?.kid);
  return box;
}

/** The first one stays where two begin at once: a process with another key meets it at the next start. */
async function remember(sql: Sql, name: string, kid: string, known: string | undefined): Promise<void> {
  if (kid === known) return;
  await sql`insert into service_keys (name, kid) values (${name}, ${kid}) on conflict (name) do update
    set kid = excluded.kid, since = now()`;
}

const decoded = async (base64: Uint8Array): Promise<Buffer> => Buffer.from(Buffer.from(base64).toString('utf8').trim(), 'base64');
