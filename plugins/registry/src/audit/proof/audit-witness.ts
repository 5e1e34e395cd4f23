import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Where a chain was seen signed, at the end of a day. */
export interface Witnessed {
  readonly env_id: string;
  readonly day: string;
  readonly position: number;
  readonly audit_id: string;
  readonly hash: string;
}

/**
 * Keeps what this machine saw signed in a file of its own. Somebody who restores an earlier state of the database, signatures included,
 * does not restore this file with it. It holds one mark for each environment and day, for as long as the trail keeps the day, and a mark
 * only moves forward.
 */
export class AuditWitness implements Disposable {
  /** When it began to look. */
  readonly since: string;
  /** Made by this very start: whatever was seen before is not known. */
  readonly isNew: boolean;
  readonly path: string;
  readonly #file: DatabaseSync;

  private constructor(path: string, file: DatabaseSync, since: string, isNew: boolean) {
    this.path = path;
    this.#file = file;
    this.since = since;
    this.isNew = isNew;
  }

  static open(directory: string, now: Date): AuditWitness {
    const path = join(directory, 'witness.db');
    const file = new DatabaseSync(path, { timeout: 1_000 });
    // Nobody waits for the disk: a mark that a power failure takes is made again from the next signature.
    file.exec(`
      pragma journal_mode = wal;
      pragma synchronous = normal;
      create table if not exists marks (
        env_id text, day text, position integer not null, audit_id text not null, hash text not null, primary key (env_id, day)
      ) without rowid;
      create table if not exists begun (one integer primary key check (one = 1), since text not null)`);
    const { changes } = file.prepare('insert into begun values (1, ?) on conflict do nothing').run(now.toISOString());
    const { since } = file.prepare('select since from begun').get() as { since: string };
    return new AuditWitness(path, file, since, changes > 0);
  }

  /** Marks of one environment behind a position, in their order. */
  marks(envId: string, behind = 0): readonly Witnessed[] {
    return this.#file
      .prepare('select * from marks where env_id = ? and position > ? order by position')
      .all(envId, behind) as unknown as Witnessed[];
  }

  /** Position of the oldest mark of an environment. */
  oldest(envId: string): number | undefined {
    const { position } = this.#file.prepare('select min(position) as position from marks where env_id = ?').get(envId) as {
      position: number | null;
    };
    return position ?? undefined;
  }

  /** The newest mark of each of these environments. */
  newest(envIds: readonly string[]): ReadonlyMap<string, Witnessed> {
    const last = this.#file.prepare('select * from marks where env_id = ? order by day desc limit 1');
    return new Map(envIds.flatMap(envId => (last.all(envId) as unknown as Witnessed[]).map(mark => [envId, mark] as const)));
  }

  /** Environments it knows, in their order. */
  environments(after: string, limit: number): readonly { readonly env_id: string; readonly position: number }[] {
    return this.#file
      .prepare('select env_id, max(position) as position from marks where env_id > ? group by env_id order by env_id limit ?')
      .all(after, limit) as unknown as {
      env_id: string;
      position: number;
    }[];
  }

  /** Takes note, and forgets what retention has cut: what stood before a position. */
  note(seen: readonly Witnessed[], cuts: readonly Pick<Witnessed, 'env_id' | 'position'>[]): void {
    if (seen.length === 0 && cuts.length === 0) return;
    const add = this.#file.prepare(`insert into marks (env_id, day, position, audit_id, hash) values (?, ?, ?, ?, ?)
      on conflict do update set position = excluded.position, audit_id = excluded.audit_id, hash = excluded.hash
        where excluded.position > marks.position`);
    const forget = this.#file.prepare('delete from marks where env_id = ? and position < ?');
    this.#file.exec('begin immediate');
    try {
      for (const { env_id, day, position, audit_id, hash } of seen) add.run(env_id, day, position, audit_id, hash);
      for (const { env_id, position } of cuts) forget.run(env_id, position);
      this.#file.exec('commit');
    } catch (error) {
      this.#file.exec('rollback');
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }
}
