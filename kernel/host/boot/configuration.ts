import { Type, type TSchema } from '@platform/sdk';
import { Validator } from '../../http/schema/schema.ts';
import { DEFAULT_POOL, LOOPBACK } from './bootstrap.ts';
import { DEFAULT_LIMITS } from '../../routing/connections/connection-pool.ts';

type Setting = TSchema & { env?: string; default?: unknown; description?: string; secret?: boolean; type?: string };

/** One wrong or missing setting: its variable, what it is for, and what would do. */
export interface ConfigFault {
  readonly variable: string;
  readonly purpose: string;
  readonly fault: string;
}

export interface ConfigValue {
  readonly name: string;
  readonly variable: string;
  readonly value: unknown;
  readonly source: 'environment' | 'default' | 'unset';
  readonly secret: boolean;
  readonly description: string;
}

/** A start that cannot be, because of its settings; the message names every variable. */
export class ConfigError extends Error {}

/** EX_CONFIG of sysexits: what a start that failed on its settings exits with. */
export const EXIT_CONFIG = 78;

/** Settings the kernel itself reads (G-K-17). */
export const KERNEL_CONFIG = Type.Object({
  domain: Type.String({
    env: 'PLATFORM_DOMAIN',
    default: 'localhost',
    pattern: '^[a-z0-9.-]{1,200}$',
    description: 'Base domain; services answer on {label}.ops.sys.{domain}',
  }),
  environment: Type.Union([Type.Literal('development'), Type.Literal('production')], {
    env: 'PLATFORM_ENV',
    default: 'development',
    description: 'production refuses every development default',
  }),
  ip: Type.String({
    env: 'PLATFORM_CAPTAIN_IP',
    default: LOOPBACK,
    pattern: '^[0-9a-f.:]{2,45}$',
    description: 'Address of this machine in the fleet; its services are reached there',
  }),
  databaseUrl: Type.Optional(Type.String({ env: 'PLATFORM_DB_URL', description: 'Postgres to use instead of the embedded one' })),
  keyValueUrl: Type.Optional(
    Type.String({ env: 'PLATFORM_KV_URL', description: 'Redis-protocol store to use instead of the embedded one' }),
  ),
  dataDir: Type.Optional(
    Type.String({
      env: 'PLATFORM_DATA_DIR',
      description:
        'Where certificates, databases, keys and logs live; .data beside package.json when unset. A relative one is taken from where the command was given',
    }),
  ),
  pluginDirs: Type.String({
    env: 'PLATFORM_PLUGIN_DIRS',
    default: '',
    description: 'Folders of plugins or of parents of plugins, separated by colons; read at boot and watched',
  }),
  edgePort: Type.Integer({
    env: 'PLATFORM_PROXY_HTTPS_PORT',
    default: 8443,
    minimum: 0,
    maximum: 65535,
    description: 'Port of the ingress; 0 takes any free one',
  }),
  logLevel: Type.Union(
    ['debug', 'info', 'warn', 'error'].map(level => Type.Literal(level)),
    { env: 'PLATFORM_LOG_LEVEL', default: 'info', description: 'Least severe level that is logged' },
  ),
  pqMode: Type.Union([Type.Literal('strict'), Type.Literal('hybrid')], {
    env: 'PLATFORM_TLS_PQ_MODE',
    default: 'strict',
    description: 'Key exchange between services: X25519MLKEM768 only, or classical groups too',
  }),
  rootDays: Type.Integer({
    env: 'PLATFORM_ACME_ROOT_DAYS',
    default: 3_650,
    minimum: 1,
    maximum: 36_500,
    description: 'Days the root certificates are valid, when they are made',
  }),
  intermediateDays: Type.Integer({
    env: 'PLATFORM_ACME_INTERMEDIATE_DAYS',
    default: 1_825,
    minimum: 1,
    maximum: 36_500,
    description: 'Days the intermediate certificates are valid, when they are made',
  }),
  services: Type.Optional(
    Type.String({
      env: 'PLATFORM_SERVICES',
      description: 'Services to start at boot, by id, separated by commas; those of the distribution when unset',
    }),
  ),
  orphanS: Type.Integer({
    env: 'PLATFORM_CAPTAIN_ORPHAN_S',
    default: 900,
    minimum: 0,
    maximum: 86_400,
    description: 'Seconds that a service lives on when its supervisor is gone and no other one takes it over; 0 sets no end',
  }),
  releasesDir: Type.Optional(
    Type.String({
      env: 'PLATFORM_RELEASES_DIR',
      description: 'Folder of releases as `platform release` packs them; a service can be upgraded to each by its name',
    }),
  ),
  databasePool: Type.Integer({
    env: 'PLATFORM_DB_POOL',
    default: DEFAULT_POOL,
    minimum: 2,
    maximum: 200,
    description: 'Connections to the database in the pool of one service; a start whose services do not fit into it is refused',
  }),
  backendConnections: Type.Integer({
    env: 'PLATFORM_BACKEND_CONNECTIONS',
    default: DEFAULT_LIMITS.connections,
    minimum: 1,
    maximum: 4_096,
    description:
      'Ordinary requests that one caller has under way at one instance of a service; what lasts over a second is counted among the streams',
  }),
  backendStreams: Type.Integer({
    env: 'PLATFORM_BACKEND_STREAMS',
    default: DEFAULT_LIMITS.streams,
    minimum: 16,
    maximum: 1_000_000,
    description: 'Streams, long polls, uploads and slow answers between services that a process has under way',
  }),
  backendStreamsPerAddress: Type.Integer({
    env: 'PLATFORM_BACKEND_STREAMS_PER_ADDRESS',
    default: DEFAULT_LIMITS.streamsPerAddress,
    minimum: 1,
    maximum: 1_000_000,
    description: 'How many of them come from one address outside',
  }),
  backendWaitMs: Type.Integer({
    env: 'PLATFORM_BACKEND_WAIT_MS',
    default: DEFAULT_LIMITS.waitMs,
    minimum: 1,
    maximum: 60_000,
    description: 'Milliseconds that a request waits for a connection to a backend before it is answered 503',
  }),
});

/** Reads settings from the environment: empty equals unset, text becomes the type its schema names, every fault is reported at once. */
export function readConfig(
  schema: TSchema | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): { config: Record<string, unknown>; faults: ConfigFault[]; explained: ConfigValue[] } {
  const properties = ((schema as { properties?: Record<string, Setting> } | undefined)?.properties ?? {}) as Record<string, Setting>;
  const required = new Set((schema as { required?: string[] } | undefined)?.required ?? []);
  const config: Record<string, unknown> = {};
  const faults: ConfigFault[] = [];
  const explained: ConfigValue[] = [];
  for (const [name, setting] of Object.entries(properties)) {
    const variable = setting.env ?? name;
    const text = environment[variable];
    const given = text !== undefined && text !== '';
    const value = given ? fromText(text, setting) : setting.default;
    const fault = (what: string) => faults.push({ variable, purpose: setting.description ?? '', fault: what });
    if (value === undefined) {
      if (required.has(name)) fault('is missing');
    } else if (!new Validator(setting).check(value)) {
      fault(
        `${setting.secret ? 'its value' : JSON.stringify(value)} ${new Validator(setting).faults(value)[0]?.message ?? 'does not fit'}`,
      );
    } else config[name] = value;
    explained.push({
      name,
      variable,
      value: setting.secret && given ? '[secret]' : value,
      source: given ? 'environment' : value === undefined ? 'unset' : 'default',
      secret: setting.secret ?? false,
      description: setting.description ?? '',
    });
  }
  return { config: Object.freeze(config), faults, explained };
}

function fromText(text: string, setting: Setting): unknown {
  if (setting.type === 'integer' || setting.type === 'number') return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
  if (setting.type === 'boolean') return ['on', '1', 'true'].includes(text) ? true : ['off', '0', 'false'].includes(text) ? false : text;
  return text;
}

/** Every fault on its own line, with the variable and what it is for. */
export const formatFaults = (faults: readonly ConfigFault[]): string =>
  faults.map(({ variable, purpose, fault }) => `${variable} ${fault}   (${purpose})`).join('\n');
