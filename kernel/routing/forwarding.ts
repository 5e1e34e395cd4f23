import type { IncomingMessage, ServerResponse } from 'node:http';
import { announced, isHopByHop, mayTrail } from '@platform/sdk';
import type { Dispatcher } from 'undici';

/**
 * Writes a backend's answer to a client as it comes, no faster than the client reads. Life: sent → answered → ended, or failed before
 * the answer, which the caller may still try elsewhere.
 */
export class Forwarding implements Dispatcher.DispatchHandler {
  /** The head of the answer was written; rejects when there is none. */
  readonly answered: Promise<void>;
  /** All of the answer was written. */
  readonly ended: Promise<void>;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #begun = Promise.withResolvers<void>();
  #finished = false;
  #trailed = false;
  /** The head that the client has is the backend's. */
  #written = false;
  readonly #over = Promise.withResolvers<void>();

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req;
    this.#res = res;
    this.answered = this.#begun.promise;
    this.ended = this.#over.promise;
    // The code that waits for the head hears of a failure there.
    this.ended.catch(() => undefined);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    const gone = () => controller.abort(new Error('the client went away'));
    if (this.#res.closed || (this.#res as { stream?: { destroyed: boolean } }).stream?.destroyed) return gone();
    this.#res.once('close', () => this.#finished || gone());
    this.#res.on('drain', () => controller.resume());
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    // What comes before the answer, such as early hints, is not passed on.
    if (status < 200) return;
    if (this.#res.headersSent) return controller.abort(new Error('the client was answered already'));
    const connection = String(headers['connection'] ?? '');
    const passed = Object.entries(headers).filter(([name, value]) => value !== undefined && !isHopByHop(name, connection));
    // An unread body would be taken for the next request.
    const close = this.#req.complete || this.#req.httpVersionMajor > 1 ? {} : { connection: 'close' };
    const trailer = this.#trails(status, headers) ? announced(headers['trailer']) : undefined;
    this.#res.writeHead(status, { ...Object.fromEntries(passed), ...(trailer ? { trailer } : {}), ...close });
    // A stream may be silent for a while after its head; what has a length follows at once, in one write with it.
    if (headers['content-length'] === undefined) this.#res.flushHeaders();
    this.#begun.resolve();
    this.#written = true;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#res.write(chunk)) controller.pause();
  }

  onResponseEnd(_controller: Dispatcher.DispatchController, trailers: Record<string, string | string[] | undefined> = {}): void {
    this.#finished = true;
    const passed = Object.entries(trailers).filter(([name, value]) => value !== undefined && mayTrail(name));
    if (this.#trailed && passed.length > 0) this.#res.addTrailers(Object.fromEntries(passed.map(([name, value]) => [name, String(value)])));
    this.#res.end();
    this.#over.resolve();
  }

  /** Whether this client takes trailers of this answer: it said so, and the answer has room for them. */
  #trails(status: number, headers: Record<string, unknown>): boolean {
    const { method, httpVersion, headers: asked } = this.#req;
    const room = headers['content-length'] === undefined && method !== 'HEAD' && status !== 204 && status !== 304 && httpVersion !== '1.0';
    this.#trailed = room && /\btrailers\b/i.test(String(asked.te ?? ''));
    return this.#trailed;
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#written) this.#res.destroy();
    this.#begun.reject(error);
    this.#over.reject(error);
  }
}
