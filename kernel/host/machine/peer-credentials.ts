import type { Socket } from 'node:net';

const [SOL_SOCKET, SO_PEERCRED] = [1, 17];
const UCRED_BYTES = 12;

type GetSocketOption = (fd: number, level: number, name: number, value: Buffer, length: Buffer) => number;
let getSocketOption: Promise<GetSocketOption> | undefined;

/**
 * The user at the other end of a socket of this machine, as the system knows it. Throws where it does not say: nobody is admitted then
 * (SUP-103).
 */
export async function peerUid(socket: Socket): Promise<number> {
  if (process.platform !== 'linux') throw new Error('only Linux tells who is at the other end of a socket');
  const { fd } = (socket as unknown as { _handle?: { fd?: number } })._handle ?? {};
  if (fd === undefined || fd < 0) throw new Error('the connection is gone');
  getSocketOption ??= bind();
  const [value, length] = [Buffer.alloc(UCRED_BYTES), Buffer.alloc(4)];
  length.writeInt32LE(UCRED_BYTES);
  if ((await getSocketOption)(fd, SOL_SOCKET, SO_PEERCRED, value, length) !== 0 || length.readInt32LE() !== UCRED_BYTES)
    throw new Error('the system does not say who is at the other end');
  return value.readInt32LE(4);
}

/** Node has no call for it; its door to libraries of the system stands open with `--experimental-ffi`, as every start script gives it. */
async function bind(): Promise<GetSocketOption> {
  const name = 'node:ffi';
  const { default: ffi } = (await import(name)) as {
    default: { dlopen(library: string, functions: object): { functions: { getsockopt: GetSocketOption } } };
  };
  return ffi.dlopen('libc.so.6', { getsockopt: { arguments: ['int32', 'int32', 'int32', 'buffer', 'buffer'], return: 'int32' } }).functions
    .getsockopt;
}
