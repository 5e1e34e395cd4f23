import type { PqMode } from '../identity/certificates/tls.ts';
import type { BackendLimits } from '../routing/connections/connection-pool.ts';
import type { Invitation } from './machine/enrollment/invitation.ts';

export interface HostOptions {
  readonly domain: string;
  readonly production: boolean;
  readonly dataDir: string;
  readonly edgePort: number;
  readonly logLevel: string;
  readonly pqMode: PqMode;
  /** Address of this machine in the fleet. */
  readonly ip: string;
  /** How long a process lives on whose host is gone, until another host takes it over; 0 for as long as it takes. */
  readonly orphanMs: number;
  readonly releasesDir: string | undefined;
  /** The fleet that invited this machine; its own where there is none. */
  readonly join?: Invitation;
  /** Days of the authority's certificates, when they are made; the usual ones where nothing is said. */
  readonly validity?: { readonly rootDays: number; readonly intermediateDays: number };
  readonly databaseUrl: string | undefined;
  readonly keyValueUrl: string | undefined;
  readonly backends?: BackendLimits;
  /** Connections to the database in the pool of one service. */
  readonly databasePool?: number;
  readonly pluginDirs: readonly string[];
  /** Platform services to run, by id; those of the distribution. */
  readonly services: readonly string[];
  /** One process per service instead of one for all. */
  readonly split: boolean;
  /** Runs verticals in the host process; development only. */
  readonly trustVerticals: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** What the distribution sets; every name of it must be a setting of something. */
  readonly shipped?: Readonly<Record<string, string>>;
  readonly pretty: boolean;
  readonly preferKeyValue?: 'wasm' | 'path';
  readonly progress: (text: string) => void;
}
