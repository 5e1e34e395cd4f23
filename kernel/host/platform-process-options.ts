import type { AnyPlugin, ProcessHost } from '@platform/sdk';
import type { Clock } from '../base/clock.ts';
import type { Manifest } from '../base/manifest.ts';
import type { Authority } from '../identity/certificates/trust-anchors.ts';
import type { LocalService } from '../routing/service-caller.ts';
import type { Bootstrap } from './boot/bootstrap.ts';
import type { KeySettings } from './keys/key-settings.ts';
import type { ServiceInstanceParts } from './service/service-instance-parts.ts';

export interface LoadedService {
  /** Its code; or how to load it, once this process has its keys. */
  readonly plugin: AnyPlugin | (() => Promise<AnyPlugin>);
  readonly manifest: Manifest;
  readonly config: Readonly<Record<string, unknown>>;
  /** None where no setting says anything of its keys. */
  readonly keys?: KeySettings;
}
export interface PlatformProcessOptions {
  readonly bootstrap: Bootstrap;
  readonly services: readonly LoadedService[];
  /** Only in the process that holds the certificate authority's files. */
  readonly authority?: Authority;
  /** Only in the process that starts the others. */
  readonly processes?: ProcessHost;
  readonly clock?: Clock;
  readonly processName: string;
  readonly pretty?: boolean;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Called when the process has its certificates, before code of a plugin is loaded that is loaded late. */
  readonly identified?: () => unknown;
  readonly failedPlugins?: () => readonly { plugin: string; reason: string }[];
  readonly progress?: (text: string) => void;
  readonly seen?: (service: string) => NonNullable<ServiceInstanceParts['seen']>;
  /** Services answered inside this process by something else: the test kit's stubs. */
  readonly locals?: ReadonlyMap<string, LocalService>;
  /** Keys to verify tokens with, instead of the identity service's. */
  readonly jwks?: () => Promise<{ keys: JsonWebKey[] }>;
  /** Whose sign-in host an issuer is, instead of the identity service's word. */
  readonly issuers?: (issuer: string) => Promise<string | undefined>;
}
