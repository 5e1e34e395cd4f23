import { defineContract, get, Id, Page, PageQuery, raw, Type, upload } from '@platform/sdk/contract';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { Integrity, StoredObject, Usage, Written } from './schema.ts';

const MAX_BYTES = 104_857_600;
const watched = { gate: 'storage:read', env: 'any' } as const;

/** Storage: the bytes of other services, by key (G-STO-01). */
export const storage = defineContract({
  id: 'storage',
  title: 'Storage',
  placement: { tier: 30 },
  config: Type.Object({
    url: Type.Optional(
      Type.String({
        env: 'PLATFORM_STORAGE_URL',
        description:
          'S3 bucket for the bytes, such as https://s3.example.com/bucket/folder?region=eu-central-1; the data folder of this machine when unset',
      }),
    ),
    credentials: Type.Optional(
      Type.String({
        env: 'PLATFORM_STORAGE_CREDENTIALS_REF',
        description: 'Secret reference of the bucket’s access key: id and secret with a colon between them',
      }),
    ),
  }),
  actions: {
    'storage:objects:read': { title: 'Read the own service’s objects', principals: ['machine'] },
    'storage:objects:write': { title: 'Write and delete the own service’s objects', principals: ['machine'] },
    'storage:read': { title: 'See what is stored, and check it' },
  },
  problems,
  events: {},
  routes: {
    putObject: upload('/v1/objects/{*key}', {
      params: { key: Type.String() },
      summary: 'Write one object',
      gate: { any: ['storage:objects:read', 'storage:objects:write'] },
      env: 'any',
      limit: MAX_BYTES,
      within: '10m',
      bodyProblems: { tooLarge: 'object_too_large', tooSlow: 'upload_timeout' },
      returns: Written,
      problems: [
        'key_invalid',
        'key_denied',
        'precondition_failed',
        'object_too_large',
        'sha256_mismatch',
        'length_mismatch',
        'upload_timeout',
        'too_many_transfers',
        'storage_full',
        'bytes_unreachable',
      ],
    }),
    objects: raw('/v1/objects/{*key}', {
      summary: 'Read or delete one object',
      idempotency: { none: 'An object is put under a name that the caller chooses; nothing is posted' },
      gate: { any: ['storage:objects:read', 'storage:objects:write'] },
      env: 'any',
    }),
    listObjects: get('/v1/stored', {
      summary: 'Objects, by key',
      ...watched,
      query: { prefix: Type.Optional(Type.String({ title: 'Key begins with', maxLength: 512 })), env_id: Type.Optional(Id), ...PageQuery },
      returns: Page(StoredObject),
    }),
    usage: get('/v1/usage', { summary: 'How much is stored, in all and by service', ...watched, returns: Usage }),
    usageByService: get('/v1/usage/services', {
      summary: 'How much each service stores',
      ...watched,
      returns: Type.Object({ items: Usage.properties.services }),
      hidden: true,
    }),
    verifyObjects: get('/v1/integrity', {
      summary: 'Read objects and compare them with what was stored',
      gate: {
        workload: 'The command of this machine asks as the host; handlers admit workloads of the platform alone',
        or: ['storage:read'],
      },
      env: 'any',
      query: { after: Type.Optional(Type.String({ maxLength: 1024 })) },
      returns: Integrity,
      problems: ['key_denied'],
    }),
  },
  onEnvironmentDeleted: { purge: { objects: 'stored objects' } },
  jobs: {
    reclaim: { summary: 'Delete the bytes of objects that are gone', every: '30s', timeout: '5m', runs: 'fleet' },
    sweep: { summary: 'Find bytes that no object leads to, and delete them', cron: '20 * * * *', timeout: '30m', runs: 'fleet' },
    tidy: { summary: 'Remove what uploads left behind that were cut off', every: '10m', runs: 'process' },
  },
  pages,
});
