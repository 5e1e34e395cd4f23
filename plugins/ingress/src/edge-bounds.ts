import type { Socket } from 'node:net';
import { FairShare, networkOf } from '@platform/sdk';
import type { Ctx } from './context.ts';

/** Whose a connection is: an address, of IPv6 the network that one subscriber has (G-PROXY-06). */
export function partyOf(address: string | undefined): string {
  const plain = (address ?? '').replace(/^::ffff:/, '');
  return plain.includes(':') ? `${networkOf(plain)}::/64` : plain;
}

/** How many connections are open at the edge, in all and of each address; one too many is cut before it costs a handshake. */
export class EdgeBounds {
  readonly #share: FairShare;
  readonly #open = new Set<Socket>();

  constructor({ config }: Pick<Ctx, 'config'>) {
    this.#share = new FairShare({ total: config.connections, perParty: config.connectionsPerAddress, atBound: 'refuse' });
  }

  get figures(): { readonly connections: number; readonly connections_refused_total: number; readonly connections_ended_total: number } {
    const { refused, ended } = this.#share.outcomes;
    return { connections: this.#share.size, connections_refused_total: refused, connections_ended_total: ended };
  }

  /** A new connection, before anything was read of it. `false`: it is one too many, and cut. */
  admit(socket: Socket): boolean {
    const place = this.#share.admit(partyOf(socket.remoteAddress), () => socket.destroy());
    if (!place) {
      socket.destroy();
      return false;
    }
    this.#open.add(socket);
    socket.once('close', () => {
      this.#open.delete(socket);
      place[Symbol.dispose]();
    });
    return true;
  }

  /** Cuts what is open, upgraded connections among it. */
  [Symbol.dispose](): void {
    for (const socket of this.#open) socket.destroy();
  }
}
