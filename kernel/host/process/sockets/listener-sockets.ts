import { closeSync } from 'node:fs';
import net from 'node:net';
import type { Logger } from '@platform/sdk';
import type { Manifest } from '../../../base/manifest.ts';
import { readConfig } from '../../boot/configuration.ts';
import { takeDescriptor } from './inherited-socket.ts';

interface BoundHandle {
  readonly fd: number;
  close(): void;
}
interface BoundNet {
  _createServerHandle(address: string, port: number, addressType: 4 | 6): BoundHandle | number;
}

/**
 * Sockets that instances of a service share, one after the other: bound here, where nobody accepts, and listened on by the instance that
 * serves. The next instance gets the same one, so that no connection is refused while one takes the place of the other, nor while none is
 * there (facts, section 10).
 */
export class ListenerSockets implements Disposable {
  readonly #handles = new Map<string, BoundHandle>();
  readonly #log: Pick<Logger, 'warn'>;

  constructor(log: Pick<Logger, 'warn'>) {
    this.#log = log;
  }

  /** Takes the socket from an instance that an earlier host started: it is the only one who still has it. */
  async inherit(manifest: Manifest, pid: number, first: number): Promise<void> {
    const doors = Object.values(manifest.routes).filter(({ door, options }) => door === 'listener' && options.port !== undefined);
    for (const [at, { path }] of doors.entries()) {
      const name = `${manifest.id} ${path}`;
      if (this.#handles.has(name)) continue;
      const fd = await takeDescriptor(pid, first + at);
      if (fd === undefined)
        this.#log.warn(
          { listener: name, pid },
          'the socket of an instance that was kept cannot be shared: its next upgrade needs the instance to end first',
        );
      else this.#handles.set(name, { fd, close: () => closeSync(fd) });
    }
  }

  /** The sockets of a service's `listener` doors, by the door's name. A port that is taken is an error that names it. */
  of(manifest: Manifest, environment: Readonly<Record<string, string | undefined>>): Readonly<Record<string, number>> {
    const { config } = readConfig(manifest.config, environment);
    const doors = Object.values(manifest.routes).filter(({ door, options }) => door === 'listener' && options.port !== undefined);
    return Object.fromEntries(
      doors.flatMap(({ path, options }) => {
        const port = Number(config[options.port as string]);
        // Any free port is one that nobody can share.
        if (!(port > 0)) return [];
        return [[path, this.#bind(`${manifest.id} ${path}`, String(config[options.address ?? ''] ?? '127.0.0.1'), port).fd]];
      }),
    );
  }

  [Symbol.dispose](): void {
    for (const handle of this.#handles.values()) handle.close();
    this.#handles.clear();
  }

  #bind(name: string, address: string, port: number): BoundHandle {
    const known = this.#handles.get(name);
    if (known) return known;
    const handle = (net as unknown as BoundNet)._createServerHandle(address, port, net.isIPv6(address) ? 6 : 4);
    if (typeof handle === 'number') {
      this.#log.warn({ listener: name, address, port, error: handle }, 'a socket to share cannot be bound');
      throw new Error(`port ${port} of ${address} cannot be opened for ${name}: it is taken, or not ours to take`);
    }
    this.#handles.set(name, handle);
    return handle;
  }
}
