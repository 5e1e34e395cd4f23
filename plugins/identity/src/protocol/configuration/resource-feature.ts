import { SYSTEM } from '@platform/sdk';
import { type Configuration, errors } from 'oidc-provider';
import { canonicalScope } from '../../access/scope-name.ts';
import type { Workloads } from '../../access/workloads.ts';
import { API } from '../../approvals/consents.ts';
import { type ClientDirectory, CONSOLE_CLIENT } from '../../clients/client-directory.ts';
import type { Ctx } from '../../context.ts';
import type { Realm } from '../../realms.ts';
import { LIFETIME } from './lifetimes.ts';

/** Applications that choose RS256 for their ID tokens have access tokens that services read. */
const ACCESS_TOKEN_ALG: Readonly<Record<string, string>> = { RS256: 'ES256' };
interface Parts {
  readonly ctx: Ctx;
  readonly clients: ClientDirectory;
  readonly workloads: Workloads;
}
type ResourceFeature = NonNullable<NonNullable<Configuration['features']>['resourceIndicators']>;

/** The one resource that tokens are for, and what a client may ask of it (RFC 8707). */
export function resourceFeature({ ctx, clients, workloads }: Parts, realm: Realm): ResourceFeature {
  const scopesOf = async (clientId: string) => {
    if (clientId === CONSOLE_CLIENT) return everyAction(ctx);
    // At a customer's realm a delegator asks for what a person may do, never for what the workload may.
    return realm.env_id === SYSTEM.envId ? ((await workloads.find(clientId))?.scopes ?? []) : everyAction(ctx);
  };
  return {
    enabled: true,
    defaultResource: () => API,
    useGrantedResource: () => true,
    getResourceServerInfo: async (_context, resource, client) => {
      if (resource !== API) throw new errors.InvalidTarget(`the one resource here is ${API}`);
      const registered = await clients.registered(realm.env_id, client.clientId);
      const scopes = registered
        ? registered.metadata.scope.split(' ').filter(scope => scope.includes(':'))
        : await scopesOf(client.clientId);
      return {
        scope: scopes.join(' '),
        audience: API,
        accessTokenTTL: LIFETIME.token,
        accessTokenFormat: 'jwt' as const,
        // Applications read what they registered for; what stays inside is the platform's own choice (G-K-06).
        jwt: { sign: { alg: accessTokenAlg(registered?.metadata.id_token_signed_response_alg ?? ctx.config.internalTokenAlg) } },
      };
    },
  };
}

const accessTokenAlg = (alg: string) => (ACCESS_TOKEN_ALG[alg] ?? alg) as 'EdDSA';

const everywhere = new WeakMap<object, readonly string[]>();

/** Scopes a person's token can name. The catalog's list is another one when it changes. */
function everyAction(ctx: Ctx): readonly string[] {
  const actions = ctx.catalog.actions();
  const named = everywhere.get(actions) ?? actions.flatMap(({ scope, machineOnly }) => (machineOnly ? [] : [canonicalScope(scope)]));
  everywhere.set(actions, named);
  return named;
}
