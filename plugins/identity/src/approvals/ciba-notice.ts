import type { AccountMailbox } from '../account/account-mail.ts';
import type { Attempts } from '../sign-in/attempts.ts';
import type { ClientDirectory } from '../clients/client-directory.ts';
import type { Ctx } from '../context.ts';
import type { People } from '../people/people.ts';
import type { Realm } from '../realms.ts';

interface Waiting {
  readonly jti: string;
  readonly exp?: number | undefined;
  readonly accountId?: string | undefined;
  readonly clientId?: string | undefined;
}

/**
 * Tells a person by mail that somebody asks to act for them (G-AUTH-03). The mail says which application asks and leads to the page; who
 * acts, and the text to compare, are shown there, to nobody but the person who signed in.
 */
export class CibaNotice {
  readonly #ctx: Ctx;
  readonly #parts: { attempts: Attempts; clients: ClientDirectory; mailbox: AccountMailbox; people: People };

  constructor(ctx: Ctx, parts: { attempts: Attempts; clients: ClientDirectory; mailbox: AccountMailbox; people: People }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Never in the way of the request itself: the member of the staff can send the link too (G-BFF-07). */
  async send(realm: Realm, { jti, exp, accountId, clientId = '' }: Waiting): Promise<void> {
    const { attempts, clients, mailbox, people } = this.#parts;
    try {
      const person = accountId ? await people.byId(accountId) : undefined;
      if (!person || !(await attempts.mayMail('ciba', attempts.account(realm.env_id, person.email)))) return;
      const client = await clients.find(clientId, realm.env_id);
      const name = String(client?.client_name ?? clientId);
      const link = `${mailbox.link(realm, '/ciba')}?${new URLSearchParams({ auth_req_id: jti })}`;
      await this.#ctx.db.tx(tx =>
        mailbox.write(tx, realm, person, 'ciba', { link, name }, exp === undefined ? undefined : new Date(exp * 1_000)),
      );
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'nobody could be told by mail of an assisted sign-in');
    }
  }
}
