import type { Manifest } from '../../../base/manifest.ts';
import { keyVariables } from '../../keys/key-settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** What every child inherits (G-CAP-11): nothing that names a key of the certificate authority (SUP-068). */
const BASE = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_ENV', 'NODE_COMPILE_CACHE', 'MALLOC_ARENA_MAX', 'NODE_EXTRA_CA_CERTS'];
const BASE_OF_PLATFORM = [
  'PLATFORM_DOMAIN',
  'PLATFORM_ENV',
  'PLATFORM_KV_URL',
  'PLATFORM_DB_URL',
  'PLATFORM_RUN_DIR',
  'PLATFORM_LOG_LEVEL',
  'PLATFORM_TLS_PQ_MODE',
];
/** Where traces and figures go, with what may be a key: for the platform's own services. */
const OF_TELEMETRY = 'OTEL_';
const DENIED = /^PLATFORM_ACME_CA_/;

/**
 * The environment of one service's process: the base, the settings its contract names, what those refer to, and what the operator's
 * catalog allows (`env_allow`, G-CAP-02). A vertical gets no setting of the platform by itself, and nobody a key of the authority.
 */
export function childEnvironment(
  manifest: Manifest,
  environment: Environment,
  { dataDir, allowed = [] }: { readonly dataDir: string; readonly allowed?: readonly string[] | undefined },
): Record<string, string> {
  const platform = manifest.vertical === 'platform';
  const properties = (manifest.config as { properties?: Record<string, { env?: string }> } | undefined)?.properties ?? {};
  const own = Object.values(properties).flatMap(({ env }) => (env === undefined ? [] : [env]));
  const keys = Object.entries(manifest.keys).flatMap(([name, key]) =>
    Object.values(keyVariables(manifest, name, key)).filter(value => value !== undefined),
  );
  const prefix = platform ? undefined : `${manifest.vertical.toUpperCase()}_`;
  const named = new Set([...BASE, ...(platform ? BASE_OF_PLATFORM : []), ...own, ...keys, ...allowed]);
  const chosen = Object.keys(environment).filter(name => named.has(name) || name.startsWith(prefix ?? OF_TELEMETRY));
  // A setting may say that its value stands in another variable.
  const referred = chosen.flatMap(name =>
    [...(environment[name] ?? '').matchAll(/(?:^|,)env:\/\/([A-Za-z0-9_.-]+)/g)].map(([, variable]) => variable as string),
  );
  const authority = `${dataDir}/ca/`;
  return Object.fromEntries(
    [...chosen, ...referred].flatMap(name => {
      const value = environment[name];
      return value === undefined || DENIED.test(name) || value.includes(authority) ? [] : [[name, value]];
    }),
  );
}
