import { createHash } from 'node:crypto';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Logger, readOptional, replaceFile } from '@platform/sdk';
import type { LogKeys } from './log-keys.ts';

/** What the log says of one act: a certificate was issued, taken over from the kernel's own start, or revoked. */
export interface LogFacts {
  readonly action: 'issued' | 'adopted' | 'revoked';
  readonly certificate_id: string;
  readonly serial: string;
  readonly thumbprint: string;
  readonly domain: string;
  readonly kind: string;
  readonly source: string;
  readonly not_after: string;
  /** The account, channel or person it came by. */
  readonly by: string;
}
export interface LogEntry extends LogFacts {
  readonly seq: number;
  readonly at: string;
  readonly prev: string;
  readonly hash: string;
}
export interface LogHead {
  readonly seq: number;
  readonly hash: string;
  readonly at: string;
  readonly key_id: string;
  readonly signature: string;
}

const NEWLINE = 0x0a;
const TAIL_BYTES = 65_536;
export const GENESIS = '0'.repeat(64);
const ROOM = 10_000;
const SIGN_EVERY_MS = 250;

/** What makes an entry's place in the chain: everything it says, and the entry before it. */
export const entryHash = ({ hash: _hash, ...said }: LogEntry): string =>
  createHash('sha256')
    .update(JSON.stringify(said, Object.keys(said).sort()))
    .digest('hex');
export const headText = ({ seq, hash, at }: Pick<LogHead, 'seq' | 'hash' | 'at'>): Buffer =>
  Buffer.from(`platform:acme:log:1\n${seq}\n${hash}\n${at}\n`);

interface Waiting {
  readonly facts: LogFacts;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Everything the authority ever signed or revoked, `issued/log.jsonl`: each line is chained by SHA-256 to the one before it, and the head
 * is signed by a key that is none of the authority's own. A certificate is handed out when its line is on disk. Lines that wait share one
 * write.
 */
export class IssuanceLog implements AsyncDisposable {
  readonly #directory: string;
  readonly #now: () => Date;
  readonly #keys: LogKeys;
  readonly #log: Logger;
  readonly #waiting: Waiting[] = [];
  #seq = 0;
  #hash = GENESIS;
  #writing: Promise<void> | undefined;
  #signing: Promise<void> | undefined;
  #hurry = Promise.withResolvers<void>();
  #signed = 0;
  #signedAt = Number.NEGATIVE_INFINITY;

  constructor(directory: string, { keys, now, log }: { keys: LogKeys; now: () => Date; log: Logger }) {
    this.#log = log;
    this.#directory = directory;
    this.#keys = keys;
    this.#now = now;
  }

  get path(): string {
    return join(this.#directory, 'log.jsonl');
  }

  get seq(): number {
    return this.#seq;
  }

  /** Finds the end. A line that a crash left half was told to nobody, and goes. */
  async open(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    const last = await this.#lastEntry();
    if (!last) return;
    [this.#seq, this.#hash] = [last.seq, last.hash];
    await this.#sign();
    this.#signed = this.#seq;
  }

  /** Resolves when the entry is on disk. Throws when it cannot be: then nothing may be handed out. */
  add(facts: LogFacts): Promise<void> {
    if (this.#waiting.length >= ROOM) throw new Error('the log of issued certificates cannot keep up');
    return new Promise((done, failed) => {
      this.#waiting.push({ facts, done, failed });
      this.#writing ??= this.#write();
    });
  }

  async head(): Promise<LogHead | undefined> {
    const text = await readOptional(join(this.#directory, 'head.json'));
    return text === undefined ? undefined : (JSON.parse(text) as LogHead);
  }

  /** Ends when everything that was added is written and signed. */
  async settled(): Promise<void> {
    await this.#writing;
    this.#hurry.resolve();
    await this.#signing;
    this.#hurry = Promise.withResolvers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.settled();
  }

  /**
   * Read from the end of the file, which grows for ever. One that is there and cannot be read is an error: a log begun anew would fork the
   * chain.
   */
  async #lastEntry(): Promise<LogEntry | undefined> {
    await using file = await open(this.path, 'a+', 0o600);
    let from = (await file.stat()).size;
    let text = Buffer.alloc(0);
    const lineEnds = () => text.filter(byte => byte === NEWLINE).length;
    while (from > 0 && lineEnds() < 2) {
      const length = Math.min(TAIL_BYTES, from);
      from -= length;
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, from);
      if (bytesRead < length) throw new Error('the log of issued certificates became shorter while it was read');
      text = Buffer.concat([buffer, text]);
    }
    const whole = text.lastIndexOf(NEWLINE) + 1;
    if (whole < text.length) await file.truncate(from + whole);
    const line = text.subarray(0, whole).toString('utf8').trimEnd().split('\n').at(-1);
    return line ? (JSON.parse(line) as LogEntry) : undefined;
  }

  async #write(): Promise<void> {
    // What comes in this turn goes in one write.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      try {
        await this.#append(batch.map(({ facts }) => facts));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    // In the same turn as the last look: who adds in the next one must find that nobody writes.
    this.#writing = undefined;
    if (this.#signed !== this.#seq) this.#signing ??= this.#signSoon();
  }

  /** At once after a pause, and at most four times a second: a signature costs as much as a certificate. */
  async #signSoon(): Promise<void> {
    const wait = this.#signedAt + SIGN_EVERY_MS - performance.now();
    if (wait > 0) await Promise.race([delay(wait, undefined, { ref: false }), this.#hurry.promise]);
    while (this.#signed !== this.#seq) {
      this.#signed = this.#seq;
      // A head that could not be written is behind its log; the next one is not.
      await this.#sign().catch(error =>
        this.#log.error({ err: error, seq: this.#seq }, 'the head of the log of issued certificates could not be signed'),
      );
    }
    this.#signedAt = performance.now();
    this.#signing = undefined;
  }

  async #append(batch: readonly LogFacts[]): Promise<void> {
    const at = this.#now().toISOString();
    let [seq, prev] = [this.#seq, this.#hash];
    const lines = batch.map(facts => {
      seq += 1;
      const entry: LogEntry = { seq, at, ...facts, prev, hash: '' };
      prev = entryHash(entry);
      return `${JSON.stringify({ ...entry, hash: prev })}\n`;
    });
    const file = await open(this.path, 'a', 0o600);
    try {
      await file.appendFile(lines.join(''));
      await file.datasync();
    } finally {
      await file.close();
    }
    [this.#seq, this.#hash] = [seq, prev];
  }

  async #sign(): Promise<void> {
    const head = { seq: this.#seq, hash: this.#hash, at: this.#now().toISOString() };
    await replaceFile(join(this.#directory, 'head.json'), JSON.stringify({ ...head, ...(await this.#keys.sign(headText(head))) }));
  }
}
