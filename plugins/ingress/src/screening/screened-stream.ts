import { Transform, type TransformCallback } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type BodyReader, readerOf } from './body-readers.ts';
import type { RequestValue } from './request-values.ts';
import { type Finding, screenValue } from './screen.ts';

/** One look is for so many bytes at least, or for what came in so long: bytes that come one by one do not cost a look each. */
const [PIECE, WAIT_MS] = [4_096, 20];

/**
 * A large body on its way to a backend, screened to its end: each piece before it goes on, together with the end of what went before, so
 * that memory and the time of one turn are bounded whatever its length. The first finding is told; where `found` says that it blocks,
 * nothing more goes on, and the code that was told ends the request.
 */
export class ScreenedStream extends Transform {
  readonly #contentType: string;
  readonly #found: (finding: Finding) => 'blocks' | 'passes';
  /** How much of it is screened. */
  #left: number;
  readonly #decoder = new StringDecoder('utf8');
  #values: RequestValue[] = [];
  #reader: BodyReader | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #state: 'new' | 'reading' | 'found' | 'blocked' = 'new';

  constructor(contentType: string, bytes: number, found: (finding: Finding) => 'blocks' | 'passes') {
    super();
    this.#contentType = contentType;
    this.#found = found;
    this.#left = bytes;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes >= PIECE) this.#passOn(false);
    else this.#timer ??= setTimeout(() => this.#passOn(false), WAIT_MS);
    if (this.#state !== 'blocked') done();
  }

  override _flush(done: TransformCallback): void {
    this.#passOn(true);
    if (this.#state !== 'blocked') done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#timer);
    done(error);
  }

  #passOn(isLast: boolean): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const piece = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    this.#judge(isLast ? this.#decoder.write(piece) + this.#decoder.end() : this.#decoder.write(piece), isLast);
    if (this.#state !== 'blocked' && piece.length > 0) this.push(piece);
  }

  #judge(text: string, isLast: boolean): void {
    if (this.#state === 'new') {
      this.#state = 'reading';
      this.#reader = readerOf(this.#contentType, text, (place, name, value) => value !== '' && this.#values.push({ place, name, value }));
    }
    if (this.#state !== 'reading' || !this.#reader || this.#left <= 0) return;
    this.#left -= text.length;
    this.#reader.push(text);
    // What is still under way is looked at as far as it came: the last byte of an attack does not pass.
    if (isLast) this.#reader.end();
    else this.#reader.look();
    const values = this.#values;
    this.#values = [];
    for (const value of values) {
      const finding = screenValue(value);
      if (!finding) continue;
      this.#state = this.#found(finding) === 'blocks' ? 'blocked' : 'found';
      return;
    }
  }
}
