const [PIDFD_OPEN, PIDFD_GETFD] = [434n, 438n];

type Syscall = (number: bigint, first: bigint, second: bigint, third: bigint) => bigint;
let syscall: Promise<Syscall> | undefined;

/**
 * A descriptor of another process of ours, as one of this process: how a supervisor that comes later gets the socket its predecessor bound
 * and only the service still holds. Linux 5.6 and newer, where the system lets one look into the other; `undefined` where it does not.
 */
export async function takeDescriptor(pid: number, descriptor: number): Promise<number | undefined> {
  try {
    syscall ??= bind();
    const call = await syscall;
    const process = Number(call(PIDFD_OPEN, BigInt(pid), 0n, 0n));
    if (process < 0) return undefined;
    const taken = Number(call(PIDFD_GETFD, BigInt(process), BigInt(descriptor), 0n));
    const { closeSync } = await import('node:fs');
    closeSync(process);
    return taken < 0 ? undefined : taken;
  } catch {
    return undefined;
  }
}

async function bind(): Promise<Syscall> {
  const name = 'node:ffi';
  const { default: ffi } = (await import(name)) as {
    default: { dlopen(library: string, functions: object): { functions: { syscall: Syscall } } };
  };
  return ffi.dlopen('libc.so.6', { syscall: { arguments: ['int64', 'int64', 'int64', 'int64'], return: 'int64' } }).functions.syscall;
}
