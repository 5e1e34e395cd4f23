import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { FairShare } from '@platform/sdk';
import type { Ctx } from './context.ts';
import type { Refusal } from './refusal.ts';

/** Up to here a body is read whole before a backend hears of the request (G-PROXY-04). */
export const WHOLE = 65_536;
const LATE: Refusal = { status: 408, code: 'body_timeout', title: 'The body did not come in time' };
const CROWDED: Refusal = {
  status: 429,
  code: 'too_many_bodies',
  title: 'Too many request bodies are under way',
  headers: { 'retry-after': '5' },
};

/** The client left before the end of its body: nobody reads an answer. */
export class ClientGone extends Error {}

/** A body that did not come: what to answer. */
export class BodyRefused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.title);
    this.refusal = refusal;
  }
}

/** What came of a body: all of it, or its beginning, which the stream of the whole begins with again. */
export interface Body {
  readonly begun: Uint8Array;
  readonly rest?: Readable;
}

interface UnderWay {
  /** When it began, or when a streamed one last moved. */
  since: number;
  readonly waits: () => boolean;
  readonly fail: (refusal: Refusal) => void;
}

/**
 * Takes request bodies before a backend's connection is taken (F-17): small ones whole, of large ones the beginning. Each has a deadline,
 * and each address a number of them; one too many ends the oldest of that address, so that who sends at once is never refused.
 */
export class BodyIntake {
  readonly #ctx: Ctx;
  readonly #share: FairShare;
  readonly #underWay = new Set<UnderWay>();
  #late = 0;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.#share = new FairShare({ total: ctx.config.bodies, perParty: ctx.config.bodiesPerAddress, atBound: 'end oldest' });
    ctx.own(ctx.every(1_000, () => this.#sweep()));
  }

  get figures(): { readonly bodies: number; readonly bodies_late_total: number; readonly bodies_ended_total: number } {
    return { bodies: this.#underWay.size, bodies_late_total: this.#late, bodies_ended_total: this.#share.outcomes.ended };
  }

  /** The body, or null where there is none. Throws `BodyRefused` or `ClientGone`. `stalled`: a stream that stopped moving. */
  take(req: IncomingMessage, party: string, stalled: (refusal: Refusal) => void): Promise<Body | null> | null {
    const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
    if ((length === undefined && coding === undefined && !sendsMore(req)) || (length !== undefined && Number(length) === 0)) return null;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const place = this.#share.admit(party, () => settle(() => reject(new BodyRefused(CROWDED))));
      const body: UnderWay = { since: this.#now(), waits: () => true, fail: refusal => settle(() => reject(new BodyRefused(refusal))) };
      const settle = (act: () => void) => {
        place?.[Symbol.dispose]();
        this.#underWay.delete(body);
        req.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone);
        act();
      };
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size <= WHOLE) return;
        const begun = Buffer.concat(chunks);
        settle(() => resolve({ begun, rest: this.#streamed(req, begun, stalled) }));
      };
      const onEnd = () => settle(() => resolve({ begun: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks) }));
      const onGone = () => settle(() => reject(new ClientGone('the client went away before the end of its body')));
      this.#underWay.add(body);
      req.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone);
    });
  }

  /** The rest of a large body. It goes on a connection of its own; while nothing comes, though somebody reads, its time runs. */
  #streamed(req: IncomingMessage, begun: Buffer, stalled: (refusal: Refusal) => void): Readable {
    req.pause();
    req.unshift(begun);
    const body: UnderWay = {
      since: this.#now(),
      waits: () => req.readableFlowing === true,
      fail: refusal => (this.#underWay.delete(body), stalled(refusal)),
    };
    this.#underWay.add(body);
    req.on('data', () => {
      body.since = this.#now();
    });
    // Listening made it flow; the backend's connection says when.
    req.pause();
    req.once('close', () => this.#underWay.delete(body)).once('end', () => this.#underWay.delete(body));
    req.on('error', () => undefined);
    return req;
  }

  #sweep(): void {
    const latest = this.#now() - this.#ctx.config.bodyTimeoutS * 1_000;
    for (const body of this.#underWay) {
      if (!body.waits()) body.since = this.#now();
      else if (body.since <= latest) {
        this.#late += 1;
        body.fail(LATE);
      }
    }
  }

  #now(): number {
    return this.#ctx.clock.now().getTime();
  }
}

/** Of HTTP/2 alone: a stream that did not end with its headers. */
const sendsMore = (req: IncomingMessage): boolean => (req as { stream?: { endAfterHeaders?: boolean } }).stream?.endAfterHeaders === false;
