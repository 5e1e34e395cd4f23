import { MailQueue, type SealedBox } from '@platform/sdk';
import { filled, type Locale, spokenOf } from '../../../../signin/messages.ts';
import type { Ctx } from '../context.ts';
import { type Letter, MAIL_WORDS } from '../mail/mail-words.ts';
import { isAddress, type Person } from '../people.ts';
import type { Asked } from './account-requests.ts';
import type { Realm, Realms } from '../realms.ts';

interface AccountMail {
  readonly env_id: string;
  readonly user_id: string;
  readonly to: string;
  readonly subject: string;
  readonly body: string;
  /** When its link is of no use any more. */
  readonly until?: string;
}
/** The language is that of the page on which the mail was asked for, else the account's. */
export type Recipient = Pick<Person, 'user_id' | 'email' | 'locale'>;
interface Step {
  readonly token: string;
  readonly expires: Date;
}
/** What happened to an account, told to its owner, who may not have done it. */
export type Notice = Exclude<
  Letter,
  'confirm_address' | 'already_there' | 'asked_twice' | 'reset_password' | 'welcome' | 'ciba' | `recovery_${'confirm' | 'under_way' | 'waiting' | 'judged' | 'wait_judged' | 'approved' | 'offered'}`
>;

/** The application and the invitation by which somebody came. */
type CameFrom = Pick<Asked, 'client_id' | 'invitation'>;

/** About two and a half hours of tries: by then every link in it has expired. */
const PARK_AFTER = 20;

/** What people read about their accounts. Links show; only a click on the page consumes (H-08). Tokens stand behind `#`, which no server and no log ever sees. */
export class AccountMailbox {
  readonly queue: MailQueue<AccountMail>;
  readonly #realms: Realms;

  constructor(ctx: Ctx, { box, realms }: { box: SealedBox; realms: Realms }) {
    this.#realms = realms;
    this.queue = new MailQueue<AccountMail>({
      ctx,
      box,
      service: 'auth',
      parkAfter: PARK_AFTER,
      send: async ({ env_id, user_id, to, subject, body, until }, mailId, signal) => {
        // A link that has expired on the way would only confuse.
        if (until && Date.parse(until) <= ctx.clock.now().getTime()) return;
        await ctx.services.notification.send({
          body: { env_id, category: 'security', recipient: { user_id, email: to }, subject, body, channels: ['email'], resource_refs: [{ type: 'user', id: user_id }], idempotency_key: mailId },
          idempotencyKey: mailId,
          signal,
        });
      },
    });
  }

  confirmAddress(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: Step, from: CameFrom = {}): Promise<void> {
    return this.write(tx, realm, person, 'confirm_address', { link: this.link(realm, '/verify-email', { token, ...from }) }, expires);
  }

  alreadyThere(tx: QueueTx, realm: Realm, person: Recipient, from: CameFrom = {}): Promise<void> {
    return this.write(tx, realm, person, 'already_there', { link: this.link(realm, '/sign-in', from), reset: this.link(realm, '/password-reset', from) });
  }

  /** For an address that was signed up with more than once before anybody confirmed it: who reads its mail chooses the password. */
  askedTwice(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: Step): Promise<void> {
    return this.write(tx, realm, person, 'asked_twice', { link: this.link(realm, '/password-reset/confirm', { token }), reset: this.link(realm, '/password-reset') }, expires);
  }

  resetPassword(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: Step): Promise<void> {
    return this.write(tx, realm, person, 'reset_password', { link: this.link(realm, '/password-reset/confirm', { token }) }, expires);
  }

  /** For an account that somebody else opened. The link lives as long as that of any reset; another one is to be had at any time. */
  welcome(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: Step): Promise<void> {
    return this.write(tx, realm, person, 'welcome', { link: this.link(realm, '/password-reset/confirm', { token }), reset: this.link(realm, '/password-reset') }, expires);
  }

  tell(tx: QueueTx, realm: Realm, person: Recipient, notice: Notice): Promise<void> {
    return this.write(tx, realm, person, notice, { link: this.link(realm, '/account-recovery'), reset: this.link(realm, '/password-reset') });
  }

  /** One mail in its reader's language; a time is told in UTC, which everybody can reckon from. */
  async write(tx: QueueTx, realm: Realm, { user_id, email, locale }: Recipient, letter: Letter, values: Readonly<Record<string, string | Date>>, until?: Date): Promise<void> {
    // A directory, or a wallet, may have opened an account that no mail reaches.
    if (!isAddress(email)) return;
    const language = spokenOf(locale) ?? 'en';
    const { subject, text } = MAIL_WORDS[language][letter];
    const told = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value instanceof Date ? timeIn(language, value) : value]));
    await this.queue.enqueue(tx, { env_id: realm.env_id, user_id, to: email, subject, body: `${filled(text, told)}\n`, ...(until ? { until: until.toISOString() } : {}) });
  }

  link(realm: Realm, path: string, { token, client_id, invitation }: CameFrom & { readonly token?: string } = {}): string {
    const search = new URLSearchParams({ ...(client_id ? { client_id } : {}), ...(invitation ? { invitation } : {}) });
    const query = search.size > 0 ? `?${search}` : '';
    return `${this.#realms.issuer(realm)}${path}${query}${token ? `#token=${token}` : ''}`;
  }
}

const timeIn = (locale: Locale, time: Date): string => `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(time)} UTC`;

type QueueTx = Parameters<MailQueue<AccountMail>['enqueue']>[0];
