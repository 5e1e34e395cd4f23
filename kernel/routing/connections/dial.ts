import { connect, type OnReadOpts, type Socket } from 'node:net';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { unanswered } from '../backend-request.ts';
import type { Directory } from '../directory.ts';

export const CONNECT_MS = 2_000;
/** How soon the other end of a quiet socket is asked whether it is still there. */
export const PROBE_MS = 60_000;

export interface Address {
  readonly ip: string;
  readonly port: number;
}

/** Where the next request to a service goes. Throws `backend_unresolved` where no instance is active. */
export async function nextAddress(directory: Pick<Directory, 'pick'>, service: string): Promise<Address> {
  const address = await directory.pick(service);
  if (!address)
    throw kernelProblem('backend_unresolved', { detail: `No instance of ${service} is active.`, headers: { 'retry-after': '3' } });
  return address;
}

/**
 * A bare connection to the next instance of a service, for bytes that are not read on the way. A second address is tried where the first
 * does not answer.
 */
export async function dial(directory: Pick<Directory, 'pick' | 'suspect'>, service: string, onread?: OnReadOpts): Promise<Socket> {
  for (let attempt = 0; ; attempt++) {
    const address = await nextAddress(directory, service);
    try {
      return await dialed(address, onread);
    } catch (cause) {
      directory.suspect(address);
      if (attempt > 0) throw unanswered(service, cause);
    }
  }
}

function dialed({ ip, port }: Address, onread: OnReadOpts | undefined): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(
      {
        host: ip,
        port,
        timeout: CONNECT_MS,
        keepAlive: true,
        keepAliveInitialDelay: PROBE_MS,
        allowHalfOpen: true,
        ...(onread ? { onread } : {}),
      },
      () => {
        socket.setTimeout(0).removeAllListeners('timeout').off('error', reject);
        resolve(socket);
      },
    );
    socket.once('timeout', () => socket.destroy(new Error('connect timeout'))).once('error', reject);
  });
}
