import { interactionPolicy, type Interaction, type KoaContextWithOIDC } from 'oidc-provider';
import type { Invited } from '../account/sign-up/invited.ts';
import { consentFlowOf } from '../approvals/consent-flow.ts';
import { type Consents, flowOf } from '../approvals/consents.ts';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Realm } from '../realms.ts';

const CARRIED = ['client_id', 'redirect_uri', 'state', 'code_challenge', 'scope', 'login_hint', 'ui_locales', 'invitation'];

/** The page on which an interrupted authorization goes on, with its context in the query (SGN-017, SGN-029). */
export async function pageOf(
  { clients, invited }: { clients: ClientDirectory; invited: Invited },
  realm: Realm,
  context: KoaContextWithOIDC,
  { params, uid, prompt }: Interaction,
): Promise<string> {
  const carried = CARRIED.flatMap(name => (typeof params[name] === 'string' ? [[name, params[name] as string]] : []));
  const step =
    prompt.name !== 'login'
      ? 'consent'
      : params['screen_hint'] === 'signup' || (await isNewcomer(invited, realm, params))
        ? 'sign-up'
        : 'sign-in';
  const flow = step === 'consent' ? flowOf(context, await clients.registered(realm.env_id, String(params['client_id']))) : undefined;
  return `/${step}?${new URLSearchParams([
    ...carried,
    ['uid', uid],
    ...(flow === undefined ? [] : [['consent_flow', consentFlowOf(flow, uid)]]),
  ])}`;
}

/** A person who follows an invitation and has no account yet begins with one. */
async function isNewcomer(invited: Invited, realm: Realm, params: Interaction['params']): Promise<boolean> {
  const invitation = typeof params['invitation'] === 'string' ? await invited.open(realm, params['invitation']) : undefined;
  return invitation !== undefined && invited.isNew(realm, invitation);
}

/**
 * When a page stands in between. Who signed in is never written into the authorization: it is the session of the browser that goes on,
 * so nobody can finish a stranger's authorization, and any number of tabs may be open. «Sign in again» therefore means: since it began.
 */
export function policyOf(consents: Consents, realm: Realm): interactionPolicy.DefaultPolicy {
  const { base, Check } = interactionPolicy;
  const policy = base();
  const login = policy.get('login');
  const since = ({ oidc }: KoaContextWithOIDC) => {
    const began = oidc.entities.Interaction?.iat;
    return began !== undefined && (oidc.session?.loginTs ?? 0) >= began;
  };
  login?.checks.remove('login_prompt');
  login?.checks.remove('max_age');
  login?.checks.add(
    new Check(
      'login_prompt',
      'the person must sign in again',
      'login_required',
      context => context.oidc.prompts.has('login') && !since(context),
    ),
  );
  login?.checks.add(
    new Check('max_age', 'the sign-in is too old', 'login_required', context => {
      const age = context.oidc.params?.['max_age'];
      return age !== undefined && !since(context) && (context.oidc.session?.past(Number(age)) ?? true);
    }),
  );
  login?.checks.add(
    new Check(
      'account_gone',
      'the account is closed',
      'login_required',
      ({ oidc }) => oidc.session?.accountId !== undefined && oidc.account === undefined,
    ),
  );
  for (const check of policy.get('consent')?.checks ?? []) {
    const ask = check.check;
    check.check = async context =>
      (await consents.isFirstParty(realm.env_id, context.oidc.client?.clientId ?? '')) ? false : ask(context);
  }
  return policy;
}
