import type { ValkeyBridge } from './bridge.ts';
import type { BridgeConnection } from './bridge-connection.ts';

/** A connection to the server inside this process, in bytes. */
export interface RawConnection {
  send(bytes: Buffer): void;
  end(): void;
}

/** Opens one; `said` hears what the server answers, `closed` that the server ended it. */
export function rawConnection(bridge: ValkeyBridge, said: (bytes: Buffer) => void, closed: () => void = () => undefined): RawConnection {
  const connection: BridgeConnection = {
    input: [],
    offset: 0,
    ended: false,
    writable: () => true,
    consumed: () => undefined,
    write: said,
    destroy: closed,
  };
  const { changed } = bridge.attach(connection);
  return {
    send: bytes => {
      connection.input.push(bytes);
      changed();
    },
    end: () => {
      connection.ended = true;
      changed();
    },
  };
}

/** A command in the wire form. */
export const wire = (...words: readonly string[]): Buffer =>
  Buffer.from(`*${words.length}\r\n${words.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`);

/** Waits for the line that a connection answers with, and passes on what comes behind it. */
export class FirstLine {
  readonly #line = Promise.withResolvers<string>();
  readonly #rest: (bytes: Buffer) => void;
  #head: Buffer | undefined = Buffer.alloc(0);

  constructor(rest: (bytes: Buffer) => void = () => undefined) {
    this.#rest = rest;
  }

  get line(): Promise<string> {
    return this.#line.promise;
  }

  hear(bytes: Buffer): void {
    if (this.#head === undefined) return this.#rest(bytes);
    this.#head = Buffer.concat([this.#head, bytes]);
    const end = this.#head.indexOf('\r\n');
    if (end < 0) return;
    const [line, rest] = [this.#head.toString('latin1', 0, end), this.#head.subarray(end + 2)];
    this.#head = undefined;
    this.#line.resolve(line);
    if (rest.length > 0) this.#rest(rest);
  }

  closed(): void {
    this.#line.reject(new Error('the server closed the connection'));
  }
}
