import { verify } from 'node:crypto';
import { type Caller, type Sql, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../../context.ts';
import { AuditKey } from './audit-key.ts';
import type { Signed, Statement } from '../audit-statement.ts';
import { statementText } from '../audit-statement.ts';
import type { AuditTrail } from '../audit-trail.ts';
import { introduction, type KeyEntry, type KnownKey, succession } from './key-succession.ts';

const LOCK = 'platform:sys:audit:keys';

/**
 * The keys of the trail. Life of one: next → current → retired. Seeds are lines of one secret; which of them is in force, and which were
 * before, is in the database, signed. What a retired key signed in its time stays true; what it signs later is worth nothing.
 */
export class AuditKeys {
  readonly #ctx: Ctx;
  #held: readonly AuditKey[] = [];
  #entries: readonly KeyEntry[] = [];
  #known: readonly KnownKey[] = [];

  private constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** From the configured secret. Without it nothing starts: a trail that nobody signs would look like one that is. */
  static async open(ctx: Ctx): Promise<AuditKeys> {
    const keys = new AuditKeys(ctx);
    await keys.#readSecret();
    const [first] = keys.#held;
    if (!first) throw new Error('PLATFORM_SYS_AUDIT_KEY_REF names no readable secret of 32 bytes in base64, or of several in a line each');
    if ((await keys.#stored(ctx.db.sql)).length === 0) await keys.#begin(first);
    await keys.refresh();
    return keys;
  }

  /** The next key, when the secret has been given one. */
  async awaited(): Promise<AuditKey | undefined> {
    await this.#readSecret();
    return this.#next(this.#entries);
  }

  /** What another process changed meanwhile. */
  async refresh(): Promise<void> {
    const entries = await this.#stored(this.#ctx.db.sql);
    if (entries.length === this.#entries.length && entries.at(-1)?.by_itself === this.#entries.at(-1)?.by_itself && this.#mine(entries))
      return;
    if (!this.#mine(entries)) await this.#readSecret();
    const known = succession(entries);
    // The key that is held vouches for the list: somebody who can write the table cannot end it with one of ours.
    if (!known)
      throw this.#ctx.problem('audit_key_unusable', {
        detail: 'The keys in the database do not introduce each other: somebody changed them. Restore the table audit_keys.',
      });
    if (!this.#mine(entries))
      throw this.#ctx.problem('audit_key_unusable', {
        detail: `The secret of PLATFORM_SYS_AUDIT_KEY_REF has no seed of the key in force, ${entries.at(-1)?.key_id ?? 'which was taken away'}. Put it back.`,
      });
    [this.#entries, this.#known] = [entries, known];
  }

  get current(): AuditKey {
    return this.#mine(this.#entries) as AuditKey;
  }

  get entries(): readonly KeyEntry[] {
    return this.#entries;
  }

  /** Since when the key in force signs. */
  get since(): number {
    return this.#known.at(-1)?.since ?? 0;
  }

  /** The key in force, which stays so until this transaction ends. */
  async inForce(sql: Sql): Promise<AuditKey> {
    await sql`select pg_advisory_xact_lock_shared(hashtextextended(${LOCK}, 0))`;
    const [newest] = await sql<{ key_id: string }[]>`select key_id from audit_keys order by seq desc limit 1`;
    if (newest?.key_id !== this.current.id) await this.refresh();
    return this.current;
  }

  /** Whether the key that signed it was in force when it did. */
  verify({ key_id, signature, ...statement }: Statement & Pick<Signed, 'key_id' | 'signature'>): boolean {
    const signer = this.#known.find(({ id }) => id === key_id);
    if (!signer || statement.at < signer.since || statement.at >= signer.until) return false;
    return verify(null, statementText(statement), signer.key, Buffer.from(signature, 'hex'));
  }

  /** Brings the next key into force: the first seed of the secret that never was, when it is the one that is meant. */
  async rotate(
    keyId: string,
    { audit, caller, correlationId }: { audit: AuditTrail; caller: Caller; correlationId: string },
  ): Promise<void> {
    await this.#readSecret();
    await this.refresh();
    await this.#ctx.db.tx(async tx => {
      await tx.sql`select pg_advisory_xact_lock(hashtextextended(${LOCK}, 0))`;
      const before = await this.#stored(tx.sql);
      const [last, next] = [this.#mine(before), this.#next(before)];
      if (!last || before.length !== this.#entries.length)
        throw this.#ctx.problem('audit_key_rotating', { headers: { 'retry-after': '1' } });
      if (next?.id !== keyId)
        throw this.#ctx.problem('audit_key_next_missing', {
          detail:
            'Append a line with 32 fresh random bytes in base64 to the secret that PLATFORM_SYS_AUDIT_KEY_REF names, and name the key that is listed as next.',
        });
      // Later than everything the old key has signed, whatever the clocks of other machines say.
      const [{ latest }] = await tx.sql<[{ latest: number | null }]>`
        select (extract(epoch from greatest((select max(signed_at) from audit_anchors), (select max(cut_at)
          from audit_cuts), (select max(since) from audit_keys))) * 1000)::bigint as latest`;
      const entry = {
        seq: before.length + 1,
        key_id: next.id,
        public_key: next.publicKey,
        since: Math.max(this.#ctx.clock.now().getTime(), (latest ?? 0) + 1),
      };
      const text = introduction(entry, before);
      await insert(tx.sql, { ...entry, by_previous: await last.sign(text), by_itself: await next.sign(text) });
      const details = { before: last.id };
      await audit.write(tx, {
        action: 'audit.key_rotated',
        envId: SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: 'audit_key', id: next.id },
        details,
      });
    });
    await this.refresh();
  }

  #next(entries: readonly KeyEntry[]): AuditKey | undefined {
    return this.#held.find(({ id }) => entries.every(({ key_id }) => key_id !== id));
  }

  async #begin(key: AuditKey): Promise<void> {
    const entry = { seq: 1, key_id: key.id, public_key: key.publicKey, since: 0 };
    await insert(this.#ctx.db.sql, { ...entry, by_previous: null, by_itself: await key.sign(introduction(entry, [])) });
  }

  #mine(entries: readonly KeyEntry[]): AuditKey | undefined {
    return this.#held.find(({ id }) => id === entries.at(-1)?.key_id);
  }

  async #readSecret(): Promise<void> {
    const secret = await this.#ctx.keys.audit.read();
    if (!secret) return;
    try {
      const held = AuditKey.read(secret);
      if (held.length > 0) this.#held = held;
    } finally {
      secret.fill(0);
    }
  }

  async #stored(sql: Sql): Promise<readonly KeyEntry[]> {
    return sql<
      KeyEntry[]
    >`select seq, key_id, public_key, (extract(epoch from since) * 1000)::bigint as since, by_previous, by_itself from audit_keys
      order by seq`;
  }
}

async function insert(sql: Sql, entry: KeyEntry): Promise<void> {
  await sql`insert into audit_keys (seq, key_id, public_key, since, by_previous, by_itself)
    values (${entry.seq}, ${entry.key_id}, ${entry.public_key}, to_timestamp(${entry.since}::bigint / 1000.0), ${entry.by_previous},
      ${entry.by_itself}) on conflict do nothing`;
}
