/** What a child says to its host. */
export interface ChildChannel {
  say(message: 'ready' | 'beat' | { readonly failed: string; readonly absent: boolean }): void;
  close(): void;
}

/**
 * The channel to the host, for the kernel's part of the process alone: inside the walls no plugin finds it, so that none floods the host. Nor does
 * one find the calls that reach other processes, which Node's permission model leaves open. Before any of its code is loaded.
 */
export function takeChannel({ walled }: { walled: boolean }): ChildChannel {
  const send = process.send?.bind(process);
  const disconnect = process.disconnect?.bind(process);
  if (walled) {
    const denied = () => {
      throw Object.assign(new Error('A plugin reaches no other process.'), { code: 'ERR_ACCESS_DENIED' });
    };
    for (const name of ['kill', '_kill', '_debugProcess', '_debugEnd', 'send', 'disconnect', 'setuid', 'setgid', 'seteuid', 'setegid', 'chdir', 'umask'])
      if (name in process) Object.defineProperty(process, name, { value: denied, writable: false, configurable: false });
    for (const name of ['channel', '_channel']) if (name in process) Object.defineProperty(process, name, { value: undefined, writable: false, configurable: false });
  }
  return {
    say: message => {
      if (process.connected) send?.(message);
    },
    close: () => {
      if (process.connected) disconnect?.();
    },
  };
}
