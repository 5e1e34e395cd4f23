import { isProblem, type TaskRun } from '@platform/sdk';
import { filled, type Locale, spokenOf } from '../../../../signin/messages.ts';
import { MAIL_WORDS } from '../../contract/mail/mail-words.ts';
import type { Letter } from '../../contract/mail/mail-words-en.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import { isAddress } from '../people/people.ts';
import type { Person } from '../people/person.ts';
import type { Asked } from './account-requests.ts';
import { UNNAMED } from './device.ts';
import type { Realm, Realms } from '../realms.ts';

interface AccountMail {
  readonly env_id: string;
  readonly user_id: string;
  readonly to: string;
  readonly subject: string;
  readonly body: string;
  readonly letter: string;
  readonly locale: string;
  readonly vars: Readonly<Record<string, string>>;
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
  | 'confirm_address'
  | 'already_there'
  | 'asked_twice'
  | 'reset_password'
  | 'welcome'
  | 'ciba'
  | 'new_sign_in'
  | `recovery_${'confirm' | 'under_way' | 'waiting' | 'judged' | 'wait_judged' | 'approved' | 'offered'}`
>;

/** The application and the invitation by which somebody came. */
type CameFrom = Pick<Asked, 'client_id' | 'invitation'>;

/**
 * What people read about their accounts. Links show; only a click on the page consumes (H-08). Tokens stand behind `#`, which no server and
 * no log ever sees.
 */
export class AccountMailbox {
  readonly #ctx: Ctx;
  readonly #realms: Realms;

  constructor(ctx: Ctx, { realms }: { realms: Realms }) {
    this.#ctx = ctx;
    this.#realms = realms;
  }

  /** The task of a mail: hands it over, unless a link in it has expired on the way and would only confuse. */
  async send({ env_id, user_id, to, subject, body, letter, locale, vars, until }: AccountMail, { taskId, signal }: TaskRun): Promise<void> {
    if (until && Date.parse(until) <= this.#ctx.clock.now().getTime()) return;
    try {
      await this.#ctx.services.notification.send({
        body: {
          env_id,
          category: 'security',
          recipient: { user_id, email: to },
          template: { key: `auth.${letter}`, locale, vars },
          subject,
          body,
          channels: ['email'],
          // Links in it work for everybody who has them: they are for the mail alone.
          confidential: true,
          resource_refs: [{ type: 'user', id: user_id }],
          idempotency_key: taskId,
          ...(until ? { expires_at: until } : {}),
        },
        idempotencyKey: taskId,
        signal,
      });
    } catch (error) {
      // A refusal may pass, as one of a service that is just being set up does: it is tried again.
      throw isProblem(error) ? Object.assign(new Error('refused'), { code: `${error.status} ${error.code}` }) : error;
    }
  }

  confirmAddress(tx: IdentityTx, realm: Realm, person: Recipient, { token, expires }: Step, from: CameFrom = {}): Promise<void> {
    return this.write(tx, realm, person, 'confirm_address', { link: this.link(realm, '/verify-email', { token, ...from }) }, expires);
  }

  alreadyThere(tx: IdentityTx, realm: Realm, person: Recipient, from: CameFrom = {}): Promise<void> {
    return this.write(tx, realm, person, 'already_there', {
      link: this.link(realm, '/sign-in', from),
      reset: this.link(realm, '/password-reset', from),
    });
  }

  /** For an address that was signed up with more than once before anybody confirmed it: who reads its mail chooses the password. */
  askedTwice(tx: IdentityTx, realm: Realm, person: Recipient, { token, expires }: Step): Promise<void> {
    return this.write(
      tx,
      realm,
      person,
      'asked_twice',
      { link: this.link(realm, '/password-reset/confirm', { token }), reset: this.link(realm, '/password-reset') },
      expires,
    );
  }

  resetPassword(tx: IdentityTx, realm: Realm, person: Recipient, { token, expires }: Step): Promise<void> {
    return this.write(tx, realm, person, 'reset_password', { link: this.link(realm, '/password-reset/confirm', { token }) }, expires);
  }

  /** For an account that somebody else opened. The link lives as long as that of any reset; another one is to be had at any time. */
  welcome(tx: IdentityTx, realm: Realm, person: Recipient, { token, expires }: Step): Promise<void> {
    return this.write(
      tx,
      realm,
      person,
      'welcome',
      { link: this.link(realm, '/password-reset/confirm', { token }), reset: this.link(realm, '/password-reset') },
      expires,
    );
  }

  tell(tx: IdentityTx, realm: Realm, person: Recipient, notice: Notice): Promise<void> {
    return this.write(tx, realm, person, notice, {
      link: this.link(realm, '/account-recovery'),
      reset: this.link(realm, '/password-reset'),
    });
  }

  /** In the language that the account had: the browser may be a stranger's. */
  newSignIn(tx: IdentityTx, realm: Realm, person: Recipient, device: string): Promise<void> {
    const told = device || UNNAMED[spokenOf(person.locale) ?? 'en'];
    return this.write(tx, realm, person, 'new_sign_in', {
      device: told,
      time: this.#ctx.clock.now(),
      link: this.link(realm, '/account'),
      reset: this.link(realm, '/password-reset'),
    });
  }

  /** One mail in its reader's language; a time is told in UTC, which everybody can reckon from. */
  async write(
    tx: IdentityTx,
    realm: Realm,
    { user_id, email, locale }: Recipient,
    letter: Letter,
    values: Readonly<Record<string, string | Date>>,
    until?: Date,
  ): Promise<void> {
    // A directory, or a wallet, may have opened an account that no mail reaches.
    if (!isAddress(email)) return;
    const language = spokenOf(locale) ?? 'en';
    const { subject, text } = MAIL_WORDS[language][letter];
    const told = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, value instanceof Date ? timeIn(language, value) : value]),
    );
    const mail = {
      env_id: realm.env_id,
      user_id,
      to: email,
      subject,
      body: `${filled(text, told)}\n`,
      letter,
      locale: language,
      vars: told,
    };
    await tx.enqueue('mail', until ? { ...mail, until: until.toISOString() } : mail);
  }

  link(realm: Realm, path: string, { token, client_id, invitation }: CameFrom & { readonly token?: string } = {}): string {
    const search = new URLSearchParams({ ...(client_id ? { client_id } : {}), ...(invitation ? { invitation } : {}) });
    const query = search.size > 0 ? `?${search}` : '';
    return `${this.#realms.issuer(realm)}${path}${query}${token ? `#token=${token}` : ''}`;
  }
}

const timeIn = (locale: Locale, time: Date): string =>
  `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(time)} UTC`;
