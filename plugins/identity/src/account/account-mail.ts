import { MailQueue, type SealedBox } from '@platform/sdk';
import type { Ctx } from '../context.ts';
import { isAddress, type Person } from '../people.ts';
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
type Recipient = Pick<Person, 'user_id' | 'email'>;
interface Letter {
  readonly subject: string;
  readonly text: string;
}
/** What happened to an account, told to its owner, who may not have done it. */
const NOTICES = {
  password_changed: { subject: 'Your password was changed', text: 'The password of your account was changed, and every other device was signed out.' },
  mfa_enrolled: { subject: 'An authenticator app was added', text: 'Signing in to your account now asks for a code of your authenticator app.' },
  mfa_removed: { subject: 'The authenticator app was removed', text: 'Signing in to your account no longer asks for a code.' },
  recovery_code_used: { subject: 'A recovery code was used', text: 'Somebody signed in to your account with a recovery code. It is void now.' },
  recovery_codes_renewed: { subject: 'New recovery codes were made', text: 'Your account has new recovery codes. The old ones are void.' },
  wallet_linked: { subject: 'A wallet was linked to your account', text: 'Whoever holds this wallet can sign in to your account now.' },
  wallet_unlinked: { subject: 'A wallet was removed from your account', text: 'The wallet does not sign in to your account any more.' },
  passkey_added: { subject: 'A passkey was added', text: 'Somebody can sign in to your account with a new passkey, without the password.' },
  passkey_removed: { subject: 'A passkey was removed', text: 'One of the passkeys of your account is not accepted any more.' },
  passkey_suspended: { subject: 'A passkey was stopped', text: 'A copy of one of your passkeys was used. It is not accepted any more: remove it, and add another one.' },
} as const satisfies Record<string, Letter>;
export type Notice = keyof typeof NOTICES;

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

  async confirmAddress(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: { token: string; expires: Date }, clientId?: string): Promise<void> {
    const text = `Confirm that this e-mail address is yours:\n${this.#link(realm, '/verify-email', token, clientId)}\n\nThe link works once, for 24 hours. If you did not open an account, do nothing.`;
    await this.#enqueue(tx, realm, person, { subject: 'Confirm your e-mail address', text }, expires);
  }

  async alreadyThere(tx: QueueTx, realm: Realm, person: Recipient, clientId?: string): Promise<void> {
    const text = `Somebody, probably you, asked to open an account with this e-mail address. You already have one.\n\nSign in:\n${this.#link(realm, '/sign-in', undefined, clientId)}\n\nIf you forgot the password:\n${this.#link(realm, '/password-reset', undefined, clientId)}\n\nIf it was not you, do nothing.`;
    await this.#enqueue(tx, realm, person, { subject: 'You already have an account', text });
  }

  async resetPassword(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: { token: string; expires: Date }): Promise<void> {
    const text = `Choose a new password:\n${this.#link(realm, '/password-reset/confirm', token)}\n\nThe link works once, for 30 minutes. If you did not ask for it, do nothing: your password stays as it is.`;
    await this.#enqueue(tx, realm, person, { subject: 'Reset your password', text }, expires);
  }

  /** For an account that somebody else opened. The link lives as long as that of any reset; another one is to be had at any time. */
  async welcome(tx: QueueTx, realm: Realm, person: Recipient, { token, expires }: { token: string; expires: Date }): Promise<void> {
    const text = `An account was opened for you. Choose a password to sign in with:\n${this.#link(realm, '/password-reset/confirm', token)}\n\nThe link works once, for 30 minutes. Afterwards, ask for another one:\n${this.#link(realm, '/password-reset')}`;
    await this.#enqueue(tx, realm, person, { subject: 'Choose a password for your account', text }, expires);
  }

  async tell(tx: QueueTx, realm: Realm, person: Recipient, notice: Notice): Promise<void> {
    const { subject, text } = NOTICES[notice];
    await this.#enqueue(tx, realm, person, { subject, text: `${text}\n\nIf it was not you, reset your password:\n${this.#link(realm, '/password-reset')}\nand tell an administrator.` });
  }

  async #enqueue(tx: QueueTx, realm: Realm, { user_id, email }: Recipient, { subject, text }: Letter, until?: Date): Promise<void> {
    // A directory, or a wallet, may have opened an account that no mail reaches.
    if (!isAddress(email)) return;
    await this.queue.enqueue(tx, { env_id: realm.env_id, user_id, to: email, subject, body: `${text}\n`, ...(until ? { until: until.toISOString() } : {}) });
  }

  #link(realm: Realm, path: string, token?: string, clientId?: string): string {
    const query = clientId ? `?${new URLSearchParams({ client_id: clientId })}` : '';
    return `${this.#realms.issuer(realm)}${path}${query}${token ? `#token=${token}` : ''}`;
  }
}

type QueueTx = Parameters<MailQueue<AccountMail>['enqueue']>[0];
