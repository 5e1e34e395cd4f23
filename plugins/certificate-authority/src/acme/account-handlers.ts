import { SYSTEM } from '@platform/sdk';
import type { Announcer } from '../announcer.ts';
import type { Ctx } from '../context.ts';
import { Turns } from '../store/turns.ts';
import type { Account, Accounts } from './accounts.ts';
import type { Answer, OfAccount, SignedRequest } from './acme-door.ts';
import type { Orders } from './orders.ts';
import { BadJws, readJws, readKey, readPayload, verifyJws } from './signed-request.ts';

const MOST_CONTACTS = 10;
const CONTACT = /^mailto:[^\s@,?]{1,64}@[^\s@,?]{1,255}$/;
const PAGE = 100;
const ID = /^[0-9a-f-]{36}$/;

/** Accounts of the protocol (RFC 8555, 7.3). */
export class AccountHandlers {
  readonly #ctx: Ctx;
  readonly #parts: { readonly accounts: Accounts; readonly orders: Orders; readonly announcer: Announcer };
  readonly #turns = new Turns();

  constructor(ctx: Ctx, parts: { accounts: Accounts; orders: Orders; announcer: Announcer }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** `POST /acme/new-account`: the account of the key, made if need be. */
  async create({ key, payload = {}, origin, ip }: SignedRequest): Promise<Answer> {
    if (!key) throw new BadJws('malformed_request', 'A new account is asked for with its key in jwk.');
    const { accounts, announcer } = this.#parts;
    return this.#turns.take(key.thumbprint, async () => {
      const known = await accounts.byKey(key.thumbprint);
      if (known) {
        if (known.status !== 'valid')
          throw this.#ctx.problem('account_inactive', { detail: `The account of this key is ${known.status}.` });
        return { status: 200, headers: { location: urlOf(known, origin) }, body: this.#shown(known, origin) };
      }
      if (payload['onlyReturnExisting'] === true) throw this.#ctx.problem('account_does_not_exist', { detail: 'No account has this key.' });
      const account: Account = {
        account_id: this.#ctx.platform.newId(),
        jwk: key.jwk,
        thumbprint: key.thumbprint,
        status: 'valid',
        contact: this.#contact(payload['contact']) ?? [],
        terms_agreed: payload['termsOfServiceAgreed'] === true,
        created_at: this.#ctx.clock.now().toISOString(),
        ip,
      };
      await accounts.put(account);
      announcer.tell('platform:acme:account:created', tx =>
        tx.emit('platform:acme:account:created', SYSTEM.envId, { account_id: account.account_id }),
      );
      return { status: 201, headers: { location: urlOf(account, origin) }, body: this.#shown(account, origin) };
    });
  }

  /** `POST /acme/account/{id}`: asks, changes the contact, or ends the account. */
  async update(request: OfAccount): Promise<Answer> {
    const { payload, origin } = request;
    const account = this.#own(request);
    if (payload === undefined) return { body: this.#shown(account, origin) };
    const { status } = payload;
    if (status !== undefined && status !== 'deactivated' && status !== account.status)
      throw new BadJws('malformed_request', 'An account can be set to deactivated, and to nothing else.');
    const contact = this.#contact(payload['contact']);
    const changed: Account = { ...account, ...(contact ? { contact } : {}), ...(status === 'deactivated' ? { status } : {}) };
    await this.#turns.take(account.thumbprint, () => this.#parts.accounts.put(changed));
    return { body: this.#shown(changed, origin) };
  }

  /** `POST /acme/account/{id}/orders`: a hundred at a time, newest first. */
  async orders(request: OfAccount): Promise<Answer> {
    const { account_id: id } = this.#own(request);
    const cursor = request.query.get('cursor') ?? undefined;
    if (cursor !== undefined && !ID.test(cursor)) throw new BadJws('malformed_request', 'cursor is not one of ours.');
    const found = await this.#parts.orders.ofAccount(id, PAGE + 1, cursor);
    const items = found.slice(0, PAGE).filter(({ status }) => status !== 'invalid');
    const next =
      found.length > PAGE ? { link: `<${request.origin}/acme/account/${id}/orders?cursor=${found[PAGE - 1]?.order_id}>;rel="next"` } : {};
    return { headers: next, body: { orders: items.map(({ order_id: order }) => `${request.origin}/acme/order/${order}`) } };
  }

  /** `POST /acme/key-change` (RFC 8555, 7.3.5): the old key signs what the new one signed. */
  async changeKey({ account, payload, url, origin }: OfAccount): Promise<Answer> {
    const inner = readJws(payload);
    const { header } = inner;
    if (header.jwk === undefined) throw new BadJws('malformed_request', 'The inner JWS carries the new key in jwk.');
    if (header.url !== url) throw this.#ctx.problem('url_mismatch', { detail: 'The inner JWS names another url than the outer one.' });
    if (header.nonce !== undefined) throw new BadJws('malformed_request', 'The inner JWS has no nonce.');
    const next = await readKey(header.jwk);
    const said = readPayload(await verifyJws(inner, next.key));
    if (said['account'] !== urlOf(account, origin)) throw new BadJws('malformed_request', 'The inner JWS names another account.');
    if ((await readKey(said['oldKey'])).thumbprint !== account.thumbprint)
      throw new BadJws('malformed_request', 'oldKey is not the key of the account.');
    return this.#turns.take(next.thumbprint, async () => {
      const holder = await this.#parts.accounts.byKey(next.thumbprint);
      if (holder)
        throw this.#ctx.problem('key_in_use', { detail: 'Another account has this key.', headers: { location: urlOf(holder, origin) } });
      const changed: Account = { ...account, jwk: next.jwk, thumbprint: next.thumbprint };
      await this.#parts.accounts.put(changed);
      return { headers: { location: urlOf(changed, origin) }, body: this.#shown(changed, origin) };
    });
  }

  #own({ account, params }: OfAccount): Account {
    if (params['id'] !== account.account_id) throw new BadJws('not_authorized', 'This is another account.');
    return account;
  }

  #contact(given: unknown): readonly string[] | undefined {
    if (given === undefined) return undefined;
    if (!Array.isArray(given) || given.length > MOST_CONTACTS || !given.every(contact => typeof contact === 'string'))
      throw this.#ctx.problem('invalid_contact', { detail: `contact is a list of at most ${MOST_CONTACTS} URLs.` });
    const contacts = given as string[];
    if (contacts.some(contact => !contact.startsWith('mailto:')))
      throw this.#ctx.problem('unsupported_contact', { detail: 'Contacts are mailto URLs.' });
    if (contacts.some(contact => !CONTACT.test(contact)))
      throw this.#ctx.problem('invalid_contact', { detail: 'A contact is mailto: and one address, without header fields.' });
    return contacts;
  }

  #shown(account: Account, origin: string): object {
    const { status, contact, terms_agreed: agreed, jwk } = account;
    return { status, contact, ...(agreed ? { termsOfServiceAgreed: true } : {}), orders: `${urlOf(account, origin)}/orders`, key: jwk };
  }
}

const urlOf = ({ account_id: id }: Pick<Account, 'account_id'>, origin: string) => `${origin}/acme/account/${id}`;
