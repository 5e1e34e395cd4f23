import { SYSTEM } from '@platform/sdk';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { CONSOLE_CLIENT } from './client-directory.ts';
import type { Ctx } from './context.ts';
import type { EffectiveAccess } from './effective-access.ts';
import { addressClaims, type People } from './people.ts';
import type { Realm } from './realms.ts';
import { scopeList } from './scope-name.ts';
import type { Workloads } from './workloads.ts';

interface IssuedToken {
  readonly kind: string;
  readonly accountId?: string;
  readonly clientId: string;
  readonly sessionUid?: string;
}
type Claims = Record<string, unknown> & { readonly scope: string };
interface ClaimParts {
  readonly ctx: Ctx;
  readonly people: People;
  readonly access: EffectiveAccess;
  readonly workloads: Workloads;
  readonly realm: Realm;
}

/** The claims of G-K-07 that a token of this kind carries beyond what the library writes. */
export async function tokenClaims(parts: ClaimParts, context: KoaContextWithOIDC, token: IssuedToken): Promise<Claims> {
  const common = { aud: platformServices(parts.ctx), nbf: Math.floor(Date.now() / 1_000) };
  return { ...common, ...(token.kind === 'ClientCredentials' ? await machineClaims(parts, context, token) : await personClaims(parts, context, token)) };
}

/** Services of verticals are not among them: a token that reaches somebody else's code must be good there only (RFC 8693 makes one). */
function platformServices(ctx: Ctx): string[] {
  return (ctx.catalog.manifests() as readonly { id: string; vertical: string }[]).filter(({ vertical }) => vertical === 'platform').map(({ id }) => id);
}

async function machineClaims({ workloads }: ClaimParts, context: KoaContextWithOIDC, { clientId }: IssuedToken): Promise<Claims> {
  const workload = await workloads.find(clientId);
  if (!workload) throw new errors.InvalidGrant('the workload is not registered');
  const asked = context.oidc.params?.['scope'];
  const scope = narrowed(workload.scopes, typeof asked === 'string' ? asked : undefined);
  if (typeof asked === 'string' && asked !== '' && scope.length === 0) throw new errors.InvalidScope('nothing of what is asked for may be had', asked);
  return { sub: clientId, client_id: clientId, token_type: 'm2m', vertical: workload.vertical, scope: scope.join(' ') };
}

async function personClaims({ people, access, realm }: ClaimParts, context: KoaContextWithOIDC, { accountId = '', clientId, sessionUid }: IssuedToken): Promise<Claims> {
  const person = await people.byId(accountId);
  if (!person) throw new errors.InvalidGrant('the account is gone');
  const { AuthorizationCode: code, RefreshToken: refresh } = context.oidc.entities;
  const source = code ?? refresh;
  const granted = scopeList(source?.scope);
  const openid = granted.filter(scope => !scope.includes(':'));
  const actions = granted.filter(scope => scope.includes(':')).join(' ');
  return {
    token_type: 'access',
    env_id: realm.env_id,
    auth_env: realm.env_id,
    ...(clientId === CONSOLE_CLIENT ? { app_instance_id: SYSTEM.consoleAppId } : {}),
    ...(sessionUid ? { sid: sessionUid } : {}),
    ...addressClaims(person),
    amr: source?.amr ?? ['pwd'],
    auth_time: source?.authTime ?? Math.floor(Date.now() / 1_000),
    // What the person may do now; a client that names actions gets no others.
    scope: [...openid, ...narrowed([...(await access.scopesOf(accountId, realm.env_id))].sort(), actions)].join(' '),
  };
}

function narrowed(held: readonly string[], asked: string | undefined): readonly string[] {
  const wanted = new Set(scopeList(asked));
  return wanted.size === 0 ? held : held.filter(scope => wanted.has(scope));
}
