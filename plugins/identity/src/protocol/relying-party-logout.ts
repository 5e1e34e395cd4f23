import type { NodeExchange } from '@platform/sdk';
import { compactVerify, type CompactJWSHeaderParameters, errors } from 'jose';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Ctx } from '../context.ts';
import type { People } from '../people/people.ts';
import { FormRefused, formFields } from './protocol-form.ts';
import type { Realm, Realms } from '../realms.ts';
import type { Sessions } from '../sign-in/sessions.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';

interface Parts {
  readonly clients: ClientDirectory;
  readonly keys: SigningKeys;
  readonly people: People;
  readonly realms: Realms;
  readonly sessions: Sessions;
}
interface Hint {
  readonly sub: string;
}
export const END_SESSION = '/mtls/oauth/end-session';

/**
 * RP-Initiated Logout (OpenID Connect) of an application that keeps its tokens from the browser and shows its certificate instead of a
 * page: `id_token_hint` says for whom, `logout_hint` names the sign-in session; `everywhere` ends all that the person has. F-11.
 */
export class RelyingPartyLogout {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** 204 whether or not there was a session left to end. `workload`: whose certificate it is. */
  async handle(realm: Realm, { body, res }: NodeExchange, workload: string | undefined): Promise<void> {
    const refuse = (status: number, error: string, description: string) => {
      const said = JSON.stringify({ error, error_description: description });
      res
        .writeHead(status, {
          'content-type': 'application/json; charset=utf-8',
          'content-length': Buffer.byteLength(said),
          'cache-control': 'no-store',
        })
        .end(said);
    };
    let form: URLSearchParams;
    try {
      form = formFields(body);
    } catch (error) {
      if (error instanceof FormRefused) return refuse(error.status, 'invalid_request', error.message);
      throw error;
    }
    const clientId = form.get('client_id') ?? '';
    const client = await this.#parts.clients.find(clientId, realm.env_id);
    if (!workload || client?.['tls_client_auth_subject_dn'] !== `CN=m2m-${workload}`)
      return refuse(401, 'invalid_client', 'the certificate is not the client’s');
    const hint = await this.#hint(form.get('id_token_hint') ?? '', { issuer: this.#parts.realms.issuer(realm), clientId });
    if (!hint) return refuse(400, 'invalid_request', 'id_token_hint is not an id token of this issuer for this client');
    await this.#end(realm, hint.sub, { sid: form.get('logout_hint'), everywhere: form.get('everywhere') === 'true' });
    res.writeHead(204, { 'cache-control': 'no-store' }).end();
  }

  async #end(realm: Realm, userId: string, { sid, everywhere }: { sid: string | null; everywhere: boolean }): Promise<void> {
    const { people, sessions } = this.#parts;
    const person = await people.byId(userId);
    if (person?.env_id !== realm.env_id) return;
    if (everywhere) return sessions.mark(await this.#ctx.db.tx(tx => sessions.endAll(tx, person, 'sign_out')));
    // Nobody ends what is somebody else's by naming it.
    const own = sid !== null && (await sessions.of(person)).some(({ session_id }) => session_id === sid);
    if (own) await sessions.end(realm.env_id, sid, 'sign_out');
  }

  /** Whom an id token is about, however old it is: a session is ended by what it was begun with. */
  async #hint(token: string, { issuer, clientId }: { issuer: string; clientId: string }): Promise<Hint | undefined> {
    const published = ({ alg, kid = '' }: CompactJWSHeaderParameters) => {
      const found = this.#parts.keys.verificationKey(kid);
      if (found?.alg !== alg) throw new errors.JWSInvalid('no key of ours');
      return found.key;
    };
    try {
      const { payload } = await compactVerify(token, published);
      const { iss, aud, sub } = JSON.parse(Buffer.from(payload).toString('utf8')) as Record<string, unknown>;
      const meant = iss === issuer && (aud === clientId || (Array.isArray(aud) && aud.includes(clientId)));
      return meant && typeof sub === 'string' ? { sub } : undefined;
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof SyntaxError || error instanceof TypeError) return undefined;
      throw error;
    }
  }
}
