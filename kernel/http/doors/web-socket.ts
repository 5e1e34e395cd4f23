import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Connection } from '@platform/sdk';
import { WebSocket, WebSocketServer } from 'ws';

const MAX_PAYLOAD = 16_384;
const MAX_QUEUED = 256;

const server = new WebSocketServer({ noServer: true, maxPayload: MAX_PAYLOAD, clientTracking: false });

/** A WebSocket that is upgraded only when the handler accepts; until then a refusal is an ordinary HTTP answer. */
export class SocketConnection implements Connection, Disposable {
  readonly closed: Promise<void>;
  readonly #request: IncomingMessage;
  readonly #duplex: Duplex;
  readonly #head: Buffer;
  #socket: WebSocket | undefined;
  #settle!: () => void;
  readonly #queue: unknown[] = [];
  #wake: (() => void) | undefined;

  constructor(request: IncomingMessage, duplex: Duplex, head: Buffer) {
    this.#request = request;
    this.#duplex = duplex;
    this.#head = head;
    this.closed = new Promise(resolve => {
      this.#settle = resolve;
    });
    duplex.once('close', () => this.#settle());
  }

  get accepted(): boolean {
    return this.#socket !== undefined;
  }

  get bufferedBytes(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  accept(): void {
    if (this.#socket) return;
    server.handleUpgrade(this.#request, this.#duplex, this.#head, socket => {
      this.#socket = socket;
      socket.on('message', (data, binary) => this.#receive(data.toString(), binary));
      socket.on('error', () => socket.terminate());
      socket.once('close', () => {
        this.#settle();
        this.#wake?.();
      });
    });
  }

  send(message: unknown): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  close(code: number, reason = ''): void {
    this.#socket?.close(code, reason);
  }

  get messages(): AsyncIterable<unknown> {
    return this.#read();
  }

  [Symbol.dispose](): void {
    this.#socket?.terminate();
    this.#settle();
  }

  #receive(text: string, binary: boolean): void {
    if (binary || this.#queue.length >= MAX_QUEUED) return this.close(1008, 'text messages, at a pace that can be read');
    try {
      this.#queue.push(JSON.parse(text));
    } catch {
      return this.close(1007, 'messages are JSON');
    }
    this.#wake?.();
  }

  async *#read(): AsyncIterable<unknown> {
    for (;;) {
      while (this.#queue.length > 0) yield this.#queue.shift();
      if (!this.#socket || this.#socket.readyState >= WebSocket.CLOSING) return;
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
  }
}
