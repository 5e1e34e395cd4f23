import { type Server, type Socket, createServer } from 'node:net';
import { WASI } from 'node:wasi';
import { internalClient, type InternalClient } from './internal-client.ts';
import type { BridgeConnection } from './bridge-connection.ts';

/** Must match the C side: host file descriptors start here, and these are the masks of its event loop. */
const FIRST_FD = 4096;
const READABLE = 1;
const WRITABLE = 2;

const MAX_BUFFERED = 1024 * 1024;
const STEPS_PER_TURN = 64;

/** What the server sees of one connection; {@link InternalClient} is the one that is no socket. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  rk_boot(port: number): number;
  rk_step(): number;
}

/**
 * Valkey as WebAssembly behind real sockets. The package's own bridge leaves input waiting for a timer, never reuses descriptors and
 * buffers without bound, so only its wasm is used. Life: booted (loads `dump.rdb`) → listening → closed.
 */
export class ValkeyBridge {
  readonly internal: InternalClient;
  readonly #connections = new Map<number, BridgeConnection>();
  readonly #accepted: number[] = [];
  readonly #freeFds: number[] = [];
  readonly #onTrap: (error: unknown) => void;
  #exports: Exports | undefined;
  #nextFd = FIRST_FD;
  #listenFd = -1;
  #fired = 0;
  #scheduled = false;
  #server: Server | undefined;
  #cron: NodeJS.Timeout | undefined;

  private constructor(onTrap: (error: unknown) => void) {
    this.#onTrap = onTrap;
    this.internal = internalClient(() => this.#schedule());
  }

  /** Boots the server on the files of `directory`, the only ones it can reach. It has no listener yet. `onTrap` is told when it dies. */
  static async boot(wasm: BufferSource, directory: string, port: number, onTrap: (error: unknown) => void): Promise<ValkeyBridge> {
    const bridge = new ValkeyBridge(onTrap);
    const wasi = new WASI({ version: 'preview1', args: ['valkey-server'], env: {}, preopens: { '/': directory } });
    const Tag = (WebAssembly as unknown as { Tag: new (type: { parameters: string[] }) => WebAssembly.ImportValue }).Tag;
    const { instance } = await WebAssembly.instantiate(wasm, {
      wasi_snapshot_preview1: wasi.wasiImport as WebAssembly.ModuleImports,
      host: bridge.#host(),
      env: { __c_longjmp: new Tag({ parameters: ['i32'] }) },
    });
    wasi.initialize(instance);
    bridge.#exports = instance.exports as unknown as Exports;
    bridge.#exports.rk_boot(port);
    bridge.#add(bridge.internal.connection);
    // Expiry and timeouts of blocked clients run on the server's own 10 Hz clock.
    bridge.#cron = setInterval(() => bridge.#step(), 100);
    return bridge;
  }

  /** Opens the door on 127.0.0.1. */
  async listen(port: number): Promise<void> {
    this.#server = createServer({ noDelay: true }, socket => this.#add(socketConnection(socket, () => this.#schedule())));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    await promise;
  }

  /** A connection of this process, over no socket; the code that fills its input calls `changed`. */
  attach(connection: BridgeConnection): { changed(): void } {
    this.#add(connection);
    return { changed: () => this.#schedule() };
  }

  /** Shuts the door and forgets the server. */
  close(): void {
    clearInterval(this.#cron);
    this.#server?.close();
    for (const connection of this.#connections.values()) connection.destroy();
    this.#exports = undefined;
  }

  #add(connection: BridgeConnection): void {
    const fd = this.#allocate();
    this.#connections.set(fd, connection);
    this.#accepted.push(fd);
    this.#schedule();
  }

  /** The server's tables are indexed by descriptor and end at about ten thousand: numbers must come back. */
  #allocate(): number {
    return this.#freeFds.pop() ?? this.#nextFd++;
  }

  /** One pass for everything that arrives in this turn of the loop. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#step();
    });
  }

  /** Steps until nothing is ready, so that no request and no reply waits for the clock; yields to the sockets in between. */
  #step(): void {
    try {
      for (let steps = 0; steps < STEPS_PER_TURN; steps++) {
        this.#fired = 0;
        this.#exports?.rk_step();
        if (this.#fired === 0) return;
      }
      this.#schedule();
    } catch (error) {
      this.#exports = undefined;
      this.#onTrap(error);
    }
  }

  #memory(at: number, length: number): Buffer {
    // The memory grows by being replaced: never keep a view.
    return Buffer.from((this.#exports as Exports).memory.buffer, at, length);
  }

  #host(): WebAssembly.ModuleImports {
    return {
      socket: () => this.#allocate(),
      listen: (fd: number) => {
        this.#listenFd = fd;
        return 0;
      },
      accept: () => this.#accepted.shift() ?? -1,
      read: (fd: number, at: number, length: number) => {
        const connection = this.#connections.get(fd);
        if (connection === undefined) return 0;
        if (connection.input.length === 0) return connection.ended ? 0 : -1;
        const target = this.#memory(at, length);
        let done = 0;
        for (let head = connection.input[0]; head !== undefined && done < length; head = connection.input[0]) {
          const copied = head.copy(target, done, connection.offset);
          done += copied;
          connection.offset += copied;
          if (connection.offset < head.length) break;
          connection.input.shift();
          connection.offset = 0;
        }
        connection.consumed(done);
        return done;
      },
      write: (fd: number, at: number, length: number) => {
        const connection = this.#connections.get(fd);
        if (connection === undefined || connection.ended) return -1;
        if (!connection.writable()) return 0;
        connection.write(Buffer.copyBytesFrom(this.#memory(at, length)));
        return length;
      },
      close: (fd: number) => {
        const connection = this.#connections.get(fd);
        if (connection === undefined) return;
        this.#connections.delete(fd);
        this.#freeFds.push(fd);
        connection.destroy();
      },
      poll: (interestAt: number, count: number, firedAt: number, max: number) => {
        const { buffer } = (this.#exports as Exports).memory;
        const interest = new Int32Array(buffer, interestAt, count * 2);
        const fired = new Int32Array(buffer, firedAt, max * 2);
        let ready = 0;
        for (let i = 0; i < count && ready < max; i++) {
          const fd = interest[i * 2] as number;
          const mask = (interest[i * 2 + 1] as number) & this.#ready(fd);
          if (mask === 0) continue;
          fired[ready * 2] = fd;
          fired[ready * 2 + 1] = mask;
          ready += 1;
        }
        this.#fired += ready;
        return ready;
      },
    };
  }

  #ready(fd: number): number {
    if (fd === this.#listenFd) return this.#accepted.length > 0 ? READABLE : 0;
    const connection = this.#connections.get(fd);
    if (connection === undefined) return 0;
    return (connection.input.length > 0 || connection.ended ? READABLE : 0) | (connection.writable() ? WRITABLE : 0);
  }
}

function socketConnection(socket: Socket, changed: () => void): BridgeConnection {
  let waiting = 0;
  const connection: BridgeConnection = {
    input: [],
    offset: 0,
    ended: false,
    writable: () => socket.writableLength < MAX_BUFFERED,
    write: bytes => void socket.write(bytes),
    consumed: bytes => {
      waiting -= bytes;
      if (waiting < MAX_BUFFERED && socket.isPaused()) socket.resume();
    },
    destroy: () => void socket.destroySoon(),
  };
  const ended = (): void => {
    connection.ended = true;
    changed();
  };
  socket
    .on('data', (bytes: Buffer) => {
      connection.input.push(bytes);
      waiting += bytes.length;
      // A client that is blocked by its own command may send on: the rest stays in the kernel's buffers.
      if (waiting >= MAX_BUFFERED) socket.pause();
      changed();
    })
    .on('drain', changed)
    .on('end', ended)
    .on('close', ended)
    .on('error', ended);
  return connection;
}
