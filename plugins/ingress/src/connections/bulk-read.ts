import type { OnReadOpts, Socket } from 'node:net';

/** What a connection reads into at rest, and what it may grow to while it is busy. */
const [LEAST, MOST] = [16_384, 1_048_576];

/**
 * Takes what a backend sends straight to a client's socket, no faster than the client takes it. It reads into memory of its own, as large
 * as what came last asks for: at full speed a turn of the loop moves a megabyte where a stream would move sixteen times less, and a
 * connection that rests keeps little.
 */
export class BulkRead {
  readonly #client: Socket;
  /** One is read into while the other is being written. */
  #next: Buffer = Buffer.allocUnsafeSlow(LEAST);
  #other: Buffer | undefined;

  constructor(client: Socket) {
    this.#client = client;
  }

  /** For the connection to the backend, which is made with it. */
  readonly onread: OnReadOpts = {
    buffer: () => this.#next,
    callback: (length, read) => this.#take(length, read as Buffer),
  };

  /** Resolves when all that the backend sent is written; rejects where either side broke off. */
  async until(from: Socket): Promise<void> {
    const client = this.#client;
    const resume = () => void from.resume();
    client.on('drain', resume);
    try {
      await new Promise<void>((resolve, reject) => {
        const broken = () => reject(new Error('a piped connection broke off'));
        from.once('end', () => client.end(() => resolve()));
        from.on('error', broken).once('close', () => from.readableEnded || broken());
        client.once('close', () => (client.writableFinished ? resolve() : broken()));
        if (client.destroyed || from.destroyed) broken();
      });
    } finally {
      client.off('drain', resume);
    }
  }

  /** @returns whether there is room for more; where there is none, the client says when */
  #take(length: number, read: Buffer): boolean {
    const client = this.#client;
    const waits = client.writableLength > 0;
    const part = read.subarray(0, length);
    const room = client.write(waits ? Buffer.from(part) : part);
    // What the kernel took at once, and what is a copy, holds this memory no more; and whatever held the other was written before.
    const held = !waits && client.writableLength > 0;
    const free = held ? this.#other : read;
    if (held) this.#other = read;
    const size = sizeAfter(length, read.length);
    this.#next = free?.length === size ? free : Buffer.allocUnsafeSlow(size);
    return room || client.writableLength === 0;
  }
}

const sizeAfter = (length: number, size: number): number =>
  length === size ? Math.min(MOST, size * 4) : length < size / 16 ? Math.max(LEAST, size / 4) : size;
