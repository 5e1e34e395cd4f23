import { SYSTEM } from '@platform/sdk';
import { errors, type KoaContextWithOIDC } from 'oidc-provider';
import { actorOf } from '../../approvals/ciba-feature.ts';
import type { Consents } from '../../approvals/consents.ts';
import { type ClientDirectory, CONSOLE_CLIENT } from '../../clients/client-directory.ts';
import type { Ctx } from '../../context.ts';
import type { EffectiveAccess } from '../../access/effective-access.ts';
import { addressClaims, type People } from '../../people/people.ts';
import type { FoundAccount } from '../found-account.ts';
import type { Realm } from '../../realms.ts';
import { canonicalScope, scopeList } from '../../access/scope-name.ts';
import { grantName } from '../protocol-state.ts';
import type { Workloads } from '../../access/workloads.ts';

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
  readonly clients: ClientDirectory;
  readonly consents: Consents;
}

/** The claims of G-K-07 that a token of this kind carries beyond what the library writes. */
export async function tokenClaims(parts: ClaimParts, context: KoaContextWithOIDC, token: IssuedToken): Promise<Claims> {
  const common = { aud: platformServices(parts.ctx), nbf: Math.floor(Date.now() / 1_000) };
  return {
    ...common,
    ...(token.kind === 'ClientCredentials' ? await machineClaims(parts, context, token) : await personClaims(parts, context, token)),
  };
}

/** Services of verticals are not among them: a token that reaches somebody else's code must be good there only (RFC 8693 makes one). */
function platformServices(ctx: Ctx): string[] {
  return ctx.catalog
    .manifests()
    .filter(({ vertical }) => vertical === 'platform')
    .map(({ id }) => id);
}

async function machineClaims({ workloads }: ClaimParts, context: KoaContextWithOIDC, { clientId }: IssuedToken): Promise<Claims> {
  const workload = await workloads.find(clientId);
  if (!workload) throw new errors.InvalidGrant('the workload is not registered');
  const asked = context.oidc.params?.['scope'];
  const scope = narrowed(workload.scopes, typeof asked === 'string' ? asked : undefined);
  if (typeof asked === 'string' && asked !== '' && scope.length === 0)
    throw new errors.InvalidScope('nothing of what is asked for may be had', asked);
  return { sub: clientId, client_id: clientId, token_type: 'm2m', vertical: workload.vertical, scope: scope.join(' ') };
}

async function personClaims(
  parts: ClaimParts,
  context: KoaContextWithOIDC,
  { accountId = '', clientId, sessionUid }: IssuedToken,
): Promise<Claims> {
  const { ctx, people, access, realm, clients, consents } = parts;
  // The library has just looked for it.
  const account = context.oidc.entities.Account as FoundAccount | undefined;
  const person = account?.accountId === accountId ? account.person : await people.byId(accountId);
  if (!person) throw new errors.InvalidGrant('the account is gone');
  const {
    AuthorizationCode: code,
    RefreshToken: refresh,
    DeviceCode: device,
    BackchannelAuthenticationRequest: assisted,
  } = context.oidc.entities;
  const source = code ?? refresh ?? device ?? assisted;
  const granted = scopeList(source?.scope);
  const openid = granted.filter(scope => !scope.includes(':'));
  const actions = granted.filter(scope => scope.includes(':'));
  const held = [...(await access.scopesOf(accountId, realm.env_id))].sort();
  const registered = await clients.registered(realm.env_id, clientId);
  const all = clientId === CONSOLE_CLIENT || registered?.metadata.first_party === true;
  // What the person may do now; a client that names actions gets no others, and a stranger's none that it does not name.
  const scope = all && actions.length === 0 ? held : held.filter(name => actions.includes(name));
  const common = {
    env_id: realm.env_id,
    scope: [...openid, ...scope].join(' '),
    // A grant that ends takes its tokens along (RFC 6749 4.1.2).
    ...(source?.grantId ? { gid: grantName(source.grantId) } : {}),
    ...(all ? {} : { aud: audienceOf(ctx, scope, clientId) }),
  };
  // Somebody of the staff acts for the person: the token says for whom, and who (RFC 8693; G-K-07).
  const actor = actorOf(assisted);
  if (actor !== undefined) return { ...common, token_type: 'delegated', act: { sub: actor, client_id: clientId } };
  const instance = clientId === CONSOLE_CLIENT ? SYSTEM.consoleAppId : registered?.metadata.app_instance_id;
  // Accounts are chosen for those that registered, and for nobody else.
  const selected = registered && (await consents.selectionOf(source?.grantId));
  return {
    ...common,
    token_type: 'access',
    // Verifiers hold such a token to its scope; one of the tenant's own follows the live access model alone.
    ...(all ? {} : { limited: true }),
    auth_env: realm.env_id,
    ...(instance ? { app_instance_id: instance } : {}),
    ...(sessionUid ? { sid: sessionUid } : {}),
    ...(selected ? { selected_account_ids: selected } : {}),
    ...addressClaims(person),
    amr: source?.amr ?? ['pwd'],
    auth_time: source?.authTime ?? Math.floor(Date.now() / 1_000),
  };
}

/** A stranger's token is good at the services whose actions it names, and otherwise nowhere but with the stranger. */
function audienceOf({ catalog }: Ctx, scopes: readonly string[], clientId: string): string[] {
  const services = new Map(catalog.actions().map(({ scope, service }) => [canonicalScope(scope), service]));
  const audience = new Set(scopes.flatMap(scope => services.get(scope) ?? scope.split(':')[1] ?? []));
  return audience.size > 0 ? [...audience] : [clientId];
}

function narrowed(held: readonly string[], asked: string | undefined): readonly string[] {
  const wanted = new Set(scopeList(asked));
  return wanted.size === 0 ? held : held.filter(scope => wanted.has(scope));
}
