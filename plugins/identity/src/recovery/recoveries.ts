import { randomBytes } from 'node:crypto';
import type { Caller, SealedBox } from '@platform/sdk';
import type { AccountMailbox } from '../account/account-mail.ts';
import { hashOf } from '../account/step-tokens.ts';
import type { Ctx, IdentityTx } from '../context.ts';
import type { Letter } from '../../contract/mail/mail-words-en.ts';
import type { Person } from '../people/person.ts';
import type { Realm } from '../realms.ts';
import { columns, decided, isReady, lockedRecovery, open, outlookOf, purposeOf, type Recovery } from './recovery-record.ts';
import { type RecoveryRule, ruleOf } from './recovery-rule.ts';

/** What ended a recovery before its time. */
type Cause = 'link' | 'owner' | 'signed_in' | 'account_closed' | 'address_changed' | 'turned_off';

const newToken = (): string => randomBytes(32).toString('base64url');

/** The first link lasts as long as a reset's; a decision may take two weeks, and the last mail may arrive on a Friday. */
const ASKED_MINUTES = 30;
const DECISION_DAYS = 14;
const OFFERED_HOURS = 72;

/**
 * Recoveries of accounts (asked → waiting → offered → completed, or ended). Every move is one compare-and-set in the caller's
 * transaction, with its event, its audit row and its mail; of any number at once one succeeds (H-13). Only the realm's own rule moves one
 * to `offered`, and no token that sets a password exists before.
 */
export class Recoveries {
  readonly #ctx: Ctx;
  readonly #box: SealedBox;
  readonly #mailbox: AccountMailbox;

  constructor(ctx: Ctx, { box, mailbox }: { box: SealedBox; mailbox: AccountMailbox }) {
    this.#ctx = ctx;
    this.#box = box;
    this.#mailbox = mailbox;
  }

  /** Mails the link that confirms; where a recovery is under way, how it stands. */
  async ask(tx: IdentityTx, realm: Realm, person: Person): Promise<void> {
    // Two requests at once must not leave two recoveries.
    await tx.sql`select 1 from users where user_id = ${person.user_id} for update`;
    const { sql } = tx;
    const [known] = await sql<
      Recovery[]
    >`select ${columns(sql)} from account_recoveries r join users u using (user_id) where r.user_id = ${person.user_id} and ${open(sql)}`;
    const rule = ruleOf(realm);
    const held = known && rule ? await this.#judged(tx, realm, rule, known) : known;
    const reader = held && { ...held, locale: person.locale };
    if (reader?.status === 'offered') return this.#offer(tx, realm, reader);
    if (reader?.status === 'waiting') return this.#write(tx, realm, reader, 'recovery_under_way');
    if (known) await sql`delete from account_recoveries where recovery_id = ${known.recovery_id}`;
    const recoveryId = this.#ctx.platform.newId();
    const [token, cancel] = [newToken(), newToken()];
    await sql`
      insert into account_recoveries (recovery_id, env_id, user_id, confirm_hash, cancel_hash, cancel_sealed, expires_at)
      values (${recoveryId}, ${realm.env_id}, ${person.user_id}, ${hashOf(token)}, ${hashOf(cancel)},
        ${sql.json(this.#box.seal(purposeOf(recoveryId), cancel))},
        now() + make_interval(mins => ${ASKED_MINUTES}))`;
    const asked = await lockedRecovery(tx, recoveryId);
    if (!asked) return;
    const link = this.#mailbox.link(realm, '/account-recovery/confirm', { token });
    await this.#write(tx, realm, { ...asked, locale: person.locale }, 'recovery_confirm', { link }, new Date(asked.expires_at));
    await this.#record(tx, asked, 'requested');
  }

  /** @returns the recovery, where this call is the one that confirmed it. */
  async confirm(
    tx: IdentityTx,
    realm: Realm,
    token: string,
    { rule, device, locale }: { rule: RecoveryRule; device: string; locale: string | undefined },
  ): Promise<Recovery | undefined> {
    const confirmed = await this.#move(
      tx,
      tx.sql`status = 'waiting', confirm_hash = null, confirmed_at = now(), device = ${device || null}, needs_approval = ${rule.approval},
        wait_hours = ${rule.hours}, wait_until = now() + make_interval(hours => ${rule.hours}),
          expires_at = now() + make_interval(hours => ${rule.hours}, days => ${DECISION_DAYS})`,
      tx.sql`r.confirm_hash = ${hashOf(token)} and r.env_id = ${realm.env_id} and r.status = 'asked' and r.expires_at > now()
        and u.status = 'active'`,
    );
    if (!confirmed) return undefined;
    await this.#write(tx, realm, { ...confirmed, locale: locale ?? confirmed.locale }, outlookOf(rule));
    await this.#record(tx, confirmed, 'confirmed');
    return confirmed;
  }

  /** @returns whether this call is the one that decided it. */
  async approve(
    tx: IdentityTx,
    realm: Realm,
    rule: RecoveryRule,
    recoveryId: string,
    decision: { caller: Caller; reason: string },
  ): Promise<boolean> {
    const asked = await lockedRecovery(tx, recoveryId);
    if (asked) await this.#judged(tx, realm, rule, asked);
    const approved = await this.#move(
      tx,
      tx.sql`approved = true, ${decided(tx, decision)}`,
      tx.sql`r.recovery_id = ${recoveryId} and r.status = 'waiting' and r.needs_approval and not r.approved and r.expires_at > now()`,
    );
    if (!approved) return false;
    await this.#record(tx, approved, 'approved', decision.caller, { reason: decision.reason });
    if (approved.due) await this.#offer(tx, realm, approved);
    else await this.#write(tx, realm, approved, 'recovery_approved');
    return true;
  }

  /** @returns whether this call is the one that decided it. An approval may be taken back while it is not used. */
  async refuse(tx: IdentityTx, realm: Realm, recoveryId: string, decision: { caller: Caller; reason: string }): Promise<boolean> {
    const refused = await this.#end(
      tx,
      'refused',
      tx.sql`, approved = false, ${decided(tx, decision)}`,
      tx.sql`r.recovery_id = ${recoveryId} and r.confirmed_at is not null and r.expires_at > now()`,
    );
    if (!refused) return false;
    await this.#mailbox.tell(tx, realm, refused, 'recovery_refused');
    await this.#record(tx, refused, 'refused', decision.caller, { reason: decision.reason });
    return true;
  }

  /** The owner's way out, in every mail. @returns whether this call is the one that ended it. */
  async cancelByLink(tx: IdentityTx, realm: Realm, token: string, locale: string | undefined): Promise<boolean> {
    return this.#cancel(
      tx,
      realm,
      tx.sql`r.cancel_hash = ${hashOf(token)} and r.env_id = ${realm.env_id} and r.expires_at > now()`,
      'link',
      locale,
    );
  }

  /** What is under way for a person ends: it is not needed, or not wanted, any more. */
  async cancelOf(tx: IdentityTx, realm: Realm, userId: string, cause: Cause): Promise<boolean> {
    return this.#cancel(tx, realm, tx.sql`r.user_id = ${userId}`, cause);
  }

  /** A person who has waited, and was approved where that is asked for, gets the link. */
  async advance(tx: IdentityTx, realm: Realm, rule: RecoveryRule | undefined, recoveryId: string): Promise<void> {
    if (!rule) return void (await this.#cancel(tx, realm, tx.sql`r.recovery_id = ${recoveryId}`, 'turned_off'));
    const held = await lockedRecovery(tx, recoveryId);
    const ready = held && (await this.#judged(tx, realm, rule, held));
    if (ready?.status === 'waiting' && isReady(ready)) await this.#offer(tx, realm, ready);
  }

  /** What the link of the last mail leads to now: the rule may have been drawn tighter since. */
  async held(tx: IdentityTx, realm: Realm, rule: RecoveryRule, token: string): Promise<Recovery | undefined> {
    const { sql } = tx;
    const [held] = await sql<Recovery[]>`
      select ${columns(sql)} from account_recoveries r join users u using (user_id)
      where r.finish_hash = ${hashOf(token)} and r.env_id = ${realm.env_id} and ${open(sql)} and r.expires_at > now() for update of r`;
    return held && this.#judged(tx, realm, rule, held);
  }

  async expire(tx: IdentityTx, realm: Realm, recoveryId: string): Promise<void> {
    const expired = await this.#end(tx, 'expired', tx.sql``, tx.sql`r.recovery_id = ${recoveryId} and r.expires_at <= now()`);
    if (!expired) return;
    if (expired.confirmed_at) await this.#mailbox.tell(tx, realm, expired, 'recovery_expired');
    await this.#record(tx, expired, 'expired');
  }

  /** What is under way for a person and was confirmed: what nobody proved an address for is nobody's worry. */
  async confirmedOf(userId: string): Promise<{ ready_at: string; needs_approval: boolean } | null> {
    const [row] = await this.#ctx.db.sql<{ ready_at: string; needs_approval: boolean }[]>`
      select wait_until as ready_at, needs_approval and not approved as needs_approval from account_recoveries where user_id = ${userId}
        and status in ('waiting', 'offered') and expires_at > now()`;
    return row ?? null;
  }

  /** @returns whether this call is the one that used it: the time is over, and whoever must approve has, by the rule of now too. */
  async complete(tx: IdentityTx, rule: RecoveryRule, userId: string, token: string): Promise<boolean> {
    // Person first, as a sign-in locks them: the two never stand in each other's way.
    await tx.sql`select 1 from users where user_id = ${userId} for update`;
    const completed = await this.#move(
      tx,
      tx.sql`status = 'completed', ended_at = now(), finish_hash = null, cancel_sealed = null`,
      tx.sql`r.finish_hash = ${hashOf(token)} and r.user_id = ${userId} and r.status = 'offered' and r.expires_at > now()
        and r.wait_until <= now()
        and (r.approved or not (r.needs_approval or ${rule.approval})) and u.status = 'active'`,
    );
    if (completed) await this.#record(tx, completed, undefined);
    return completed !== undefined;
  }

  /**
   * A recovery that is held to another rule than the realm's goes on by the realm's: it waits again where its time or approval is missing
   * now, and the link of the last mail is good for nothing until then. Whom it belongs to is told.
   */
  async #judged(tx: IdentityTx, realm: Realm, rule: RecoveryRule, recovery: Recovery): Promise<Recovery> {
    const { recovery_id: id, needs_approval, wait_hours } = recovery;
    if (recovery.status === 'asked' || (needs_approval === rule.approval && wait_hours === rule.hours)) return recovery;
    const until = tx.sql`r.confirmed_at + make_interval(hours => ${rule.hours})`;
    const ready = tx.sql`${until} <= now() and (r.approved or not ${rule.approval})`;
    const judged = await this.#move(
      tx,
      tx.sql`needs_approval = ${rule.approval}, wait_hours = ${rule.hours}, wait_until = ${until}, status = case
        when ${ready} then r.status else 'waiting' end,
        expires_at = case when r.status = 'offered' and ${ready} then r.expires_at
          else greatest(now(), ${until}) + make_interval(days => ${DECISION_DAYS}) end`,
      tx.sql`r.recovery_id = ${id} and r.status in ('waiting', 'offered') and r.expires_at > now()`,
    );
    if (!judged) return recovery;
    if (judged.status === 'waiting' && !isReady(judged))
      await this.#write(tx, realm, judged, judged.approved ? 'recovery_approved' : outlookOf(rule));
    await this.#record(tx, judged, 'judged');
    return judged;
  }

  async #offer(tx: IdentityTx, realm: Realm, recovery: Recovery): Promise<void> {
    const token = newToken();
    // Asked for once more, the link is another one, and lasts no longer than the first.
    const offered = await this.#move(
      tx,
      tx.sql`status = 'offered', finish_hash = ${hashOf(token)}, expires_at = case when r.status = 'offered' then r.expires_at
        else now() + make_interval(hours => ${OFFERED_HOURS}) end`,
      tx.sql`r.recovery_id = ${recovery.recovery_id} and r.status in ('waiting', 'offered') and r.wait_until <= now()
        and (r.approved or not r.needs_approval) and u.status = 'active'`,
    );
    if (!offered) return;
    const until = new Date(offered.expires_at);
    await this.#write(
      tx,
      realm,
      { ...offered, locale: recovery.locale },
      'recovery_offered',
      { link: this.#mailbox.link(realm, '/account-recovery/finish', { token }), time: until },
      until,
    );
    await this.#record(tx, offered, 'offered');
  }

  async #cancel(tx: IdentityTx, realm: Realm, which: unknown, cause: Cause, locale?: string): Promise<boolean> {
    const cancelled = await this.#end(tx, 'cancelled', tx.sql``, which);
    if (!cancelled) return false;
    // What nobody had confirmed ends without a word; a new address has nothing to do with what the old one began.
    if (cancelled.confirmed_at && cause !== 'address_changed')
      await this.#mailbox.tell(tx, realm, { ...cancelled, locale: locale ?? cancelled.locale }, 'recovery_cancelled');
    await this.#record(tx, cancelled, 'cancelled', undefined, { cause });
    return true;
  }

  async #end(tx: IdentityTx, status: 'refused' | 'cancelled' | 'expired', more: unknown, which: unknown): Promise<Recovery | undefined> {
    return this.#move(
      tx,
      tx.sql`status = ${status}, ended_at = now(), confirm_hash = null, finish_hash = null, cancel_sealed = null ${more}`,
      tx.sql`${which} and ${open(tx.sql)}`,
    );
  }

  async #move({ sql }: IdentityTx, change: unknown, which: unknown): Promise<Recovery | undefined> {
    const [row] = await sql<
      Recovery[]
    >`update account_recoveries r set ${change} from users u where u.user_id = r.user_id and ${which} returning ${columns(sql)}`;
    return row;
  }

  async #write(
    tx: IdentityTx,
    realm: Realm,
    recovery: Recovery,
    letter: Letter,
    values: Readonly<Record<string, string | Date>> = {},
    until?: Date,
  ): Promise<void> {
    const cancel = recovery.cancel_sealed && this.#box.open(purposeOf(recovery.recovery_id), recovery.cancel_sealed);
    // A mail without its way out is not sent.
    if (!cancel) throw new Error('the token that cancels a recovery does not open');
    const time = new Date(recovery.wait_until ?? recovery.expires_at);
    await this.#mailbox.write(
      tx,
      realm,
      recovery,
      letter,
      { time, cancel: this.#mailbox.link(realm, '/account-recovery/cancel', { token: cancel }), ...values },
      until,
    );
  }

  /** The change of the password brings the audit row of the last step itself. */
  async #record(
    tx: IdentityTx,
    { recovery_id, env_id, user_id, status }: Recovery,
    step: string | undefined,
    caller?: Caller,
    details: object = {},
  ): Promise<void> {
    await tx.emit('platform:auth:recovery:updated', env_id, { recovery_id, user_id, env_id, status });
    if (step)
      await tx.audit({
        action: `auth.recovery.${step}`,
        envId: env_id,
        ...(caller ? { caller } : {}),
        resource: { type: 'user', id: user_id },
        details: { recovery_id, ...details },
      });
  }
}
