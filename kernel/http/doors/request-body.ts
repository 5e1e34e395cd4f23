import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';

/** Nothing may come for so long. */
const PIECE_MS = 30_000;
/** How often somebody looks at the time. */
const LOOK_MS = 5_000;

/** What a route allows a body, and what it says to more. */
export interface BodyBounds {
  readonly limit: number;
  readonly withinMs: number;
  readonly tooLarge: () => Error;
  readonly tooSlow: () => Error;
}

/** What is told of a body on its way; nothing after `end` or `fail`. */
interface Hearer {
  readonly piece: (chunk: Buffer) => void;
  readonly end: () => void;
  readonly fail: (error: Error) => void;
}

/** The body of one request, for whichever door reads it: never more than its bounds allow, and never for longer. */
export class RequestBody {
  readonly #req: IncomingMessage;
  readonly #clock: Clock;

  constructor(req: IncomingMessage, clock: Clock) {
    this.#req = req;
    this.#clock = clock;
  }

  /** Whether the request says that it has one. */
  get isSent(): boolean {
    const { headers } = this.#req;
    return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
  }

  /** All of it, in memory. */
  bytes(bounds: BodyBounds): Promise<Buffer> {
    if (!this.isSent) return Promise.resolve(Buffer.alloc(0));
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      this.#follow(bounds, {
        piece: chunk => void chunks.push(chunk),
        end: () => resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks)),
        fail: reject,
      });
    });
  }

  /** As it comes, no faster than it is read. What goes wrong ends the stream with a problem. */
  stream(bounds: BodyBounds): Readable {
    const req = this.#req;
    let followed: { again: () => void; stop: () => void } | undefined;
    const begin = (to: Readable) =>
      this.#follow(bounds, {
        piece: chunk => void (to.push(chunk) || req.pause()),
        end: () => void to.push(null),
        fail: error => void to.destroy(error),
      });
    return new Readable({
      read() {
        if (followed) followed.again();
        else followed = begin(this);
      },
      destroy(error, done) {
        followed?.stop();
        done(error);
      },
    });
  }

  /** In the form of the web. What is here already, as most are, is one piece: a stream would cost a small one more than all else. */
  web(bounds: BodyBounds): Buffer | ReadableStream {
    const req = this.#req;
    if (!req.complete || req.readableLength > bounds.limit) return Readable.toWeb(this.stream(bounds)) as ReadableStream;
    const whole = (req.read() as Buffer | null) ?? Buffer.alloc(0);
    req.resume();
    return whole;
  }

  /** By its events: an iterator over a request costs as much as the rest of a small one. */
  #follow(bounds: BodyBounds, heard: Hearer): { again: () => void; stop: () => void } {
    const [req, clock] = [this.#req, this.#clock];
    let size = 0;
    let last = 0;
    let looks: Disposable | undefined;
    const stop = () => {
      looks?.[Symbol.dispose]();
      req.off('data', piece).off('end', end).off('error', fail).off('close', gone).pause();
    };
    const fail = (error: Error) => {
      stop();
      // A client that goes says so twice.
      req.on('error', () => undefined);
      heard.fail(error);
    };
    const gone = () => fail(kernelProblem('malformed', { detail: 'The request ended before its body did.' }));
    const end = () => {
      stop();
      heard.end();
    };
    const piece = (chunk: Buffer) => {
      size += chunk.length;
      if (size > bounds.limit) return fail(bounds.tooLarge());
      if (looks) last = clock.now().getTime();
      heard.piece(chunk);
    };
    const followed = {
      stop,
      again: () => {
        if (looks) last = clock.now().getTime();
        req.resume();
      },
    };
    if (Number(req.headers['content-length'] ?? 0) > bounds.limit) return fail(bounds.tooLarge()), followed;
    if (req.destroyed && !req.readableEnded) return gone(), followed;
    if (!req.complete) {
      const begun = (last = clock.now().getTime());
      looks = clock.every(Math.min(LOOK_MS, bounds.withinMs), () => {
        const now = clock.now().getTime();
        // Whoever waits for us to read on is not slow.
        if (now - begun >= bounds.withinMs || (now - last >= PIECE_MS && !req.isPaused())) fail(bounds.tooSlow());
      });
    }
    req.on('data', piece).once('end', end).once('error', fail).once('close', gone);
    return followed;
  }
}
