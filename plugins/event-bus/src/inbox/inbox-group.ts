import { hash } from 'node:crypto';
import { type Envelope, MEMBERS } from '../stream/entry.ts';
import { mintedKey, NO_KEY } from '../produce/minted-key.ts';
import type { StreamRef } from '../stream/names.ts';

/** An event on its way onto its stream. Its key may be {@link NO_KEY} as long as it is in no group. */
export interface InboxRow extends StreamRef {
  readonly id: string;
  readonly envelope: Envelope;
}

/** A row without its layers, as it is written. */
type Flat = Omit<Envelope, 'inbox_id'> & StreamRef & { readonly id: string };

interface Column {
  readonly name: string;
  readonly label: string;
  readonly read: (row: InboxRow) => string | undefined;
}
const columnOf = (name: string, read: Column['read']): Column => ({ name, label: `${JSON.stringify(name)}:`, read });
const COLUMNS: readonly Column[] = [
  columnOf('id', ({ id }) => id),
  columnOf('env', ({ env }) => env),
  columnOf('family', ({ family }) => family),
  ...MEMBERS.map(({ name, read }) => columnOf(name, ({ envelope }) => read(envelope))),
];

/**
 * What makes two requests one, {@link NO_KEY} where nothing can: 16 bytes of SHA-256 over environment, subject and idempotency key, as 32
 * hexadecimal digits.
 */
export const keyOf = ({
  env,
  envelope,
}: {
  readonly env: string;
  readonly envelope: Pick<Envelope, 'publisher_subject' | 'idempotency_key'>;
}): string =>
  envelope.idempotency_key === NO_KEY
    ? NO_KEY
    : hash('sha256', `${env}\n${envelope.publisher_subject}\n${envelope.idempotency_key}`, 'hex').slice(0, 32);

/** Rows that were committed together, and are ours to append: nobody else's mark counts while `attempt` is the newest. */
export class InboxGroup {
  readonly id: string;
  readonly attempt: number;
  /**
   * As they were accepted, with the keys they have now; those at other positions than `positions` are copies of what another group holds.
   */
  readonly rows: readonly InboxRow[];
  readonly positions: readonly number[];
  /** By position; empty where nothing was appended. */
  readonly messageIds: string[];

  constructor({
    id,
    attempt,
    rows,
    positions,
    messageIds,
  }: { id: string; attempt: number; rows: readonly InboxRow[]; positions: readonly number[]; messageIds?: readonly string[] | null }) {
    this.id = id;
    this.attempt = attempt;
    this.rows = rows.map((row, position) => (row.envelope.idempotency_key === NO_KEY ? keyed(row, mintedKey(id, position)) : row));
    this.positions = positions;
    this.messageIds = rows.map((_, position) => messageIds?.[position] ?? '');
  }

  /** Rows as text: what all of them have is said once. */
  static write(rows: readonly InboxRow[]): string {
    const shared: Record<string, string> = {};
    const differing: Column[] = [];
    for (const column of COLUMNS) {
      const value = rows[0] && column.read(rows[0]);
      if (!rows.every(row => column.read(row) === value)) differing.push(column);
      else if (value !== undefined) shared[column.name] = value;
    }
    const texts = rows.map(row => {
      let text = '';
      for (const { label, read } of differing) {
        const value = read(row);
        if (value !== undefined) text += `${text === '' ? '' : ','}${label}${JSON.stringify(value)}`;
      }
      return `{${text}}`;
    });
    return `{"shared":${JSON.stringify(shared)},"rows":[${texts.join()}]}`;
  }

  static read(text: string): InboxRow[] {
    const { shared, rows } = JSON.parse(text) as { shared: Partial<Flat>; rows: Partial<Flat>[] };
    return rows.map(row => {
      const { id, env, family, ...envelope } = { ...shared, ...row } as Flat;
      return { id, env, family, envelope };
    });
  }

  /** Positions that are on no stream yet, in order. */
  get open(): number[] {
    return this.positions.filter(position => this.messageIds[position] === '');
  }

  /** The row as it goes onto its stream when it was read back from the inbox (BUS-028). */
  relayed(position: number): InboxRow {
    const row = this.rows[position] as InboxRow;
    return { ...row, envelope: { ...row.envelope, inbox_id: row.id } };
  }
}

const keyed = (row: InboxRow, idempotency_key: string): InboxRow => ({ ...row, envelope: { ...row.envelope, idempotency_key } });
