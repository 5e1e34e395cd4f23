import type { Ctx } from './context.ts';
import type { EffectiveAccess } from './effective-access.ts';
import type { People } from './people.ts';
import type { Realm } from './realms.ts';
import type { Workloads } from './workloads.ts';
import { CONSOLE_CLIENT } from './client-directory.ts';
import { SYSTEM } from '@platform/sdk';

interface IssuedToken {
  readonly kind: string;
  readonly accountId?: string;
  readonly clientId: string;
  readonly sessionUid?: string;
  readonly scope?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** The claims of G-K-07 that a token of this kind carries beyond what the library writes. */
export async function tokenClaims(parts: { ctx: Ctx; people: People; access: EffectiveAccess; workloads: Workloads; realm: Realm }, token: IssuedToken): Promise<Record<string, unknown>> {
  const { ctx, people, access, workloads, realm } = parts;
  const now = Math.floor(ctx.clock.now().getTime() / 1_000);
  const services = (ctx.catalog.manifests() as readonly { id: string; vertical: string }[]).filter(({ vertical }) => vertical === 'platform').map(({ id }) => id);
  if (token.kind === 'ClientCredentials') {
    const workload = await workloads.find(token.clientId);
    const asked = token.scope?.split(' ').filter(Boolean);
    return {
      sub: token.clientId,
      client_id: token.clientId,
      aud: services,
      nbf: now,
      token_type: 'm2m',
      vertical: workload?.vertical ?? '',
      scope: (asked?.length ? asked : (workload?.scopes ?? [])).join(' '),
    };
  }
  const person = token.accountId ? await people.byId(token.accountId) : undefined;
  return {
    aud: services,
    nbf: now,
    token_type: 'access',
    env_id: realm.env_id,
    auth_env: realm.env_id,
    ...(token.clientId === CONSOLE_CLIENT ? { app_instance_id: SYSTEM.consoleAppId } : {}),
    ...(token.sessionUid ? { sid: token.sessionUid } : {}),
    email: person?.email ?? '',
    email_verified: person?.email_verified ?? false,
    amr: ['pwd'],
    auth_time: Number(token.extra?.['auth_time'] ?? now),
    scope: token.accountId ? [...(await access.scopesOf(token.accountId, realm.env_id))].join(' ') : '',
  };
}
