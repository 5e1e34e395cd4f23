/** What a child says to its host. */
export interface ChildChannel {
  say(message: 'ready' | 'beat' | { readonly failed: string; readonly absent: boolean }): void;
  close(): void;
}

/** What Node's `send` calls: it stays ours when the other is taken away. */
type RawSend = (message: unknown, handle: undefined, options: object, done: () => void) => boolean;

/**
 * Calls that reach the host or other processes, which Node's permission model leaves open. What Node itself calls when the channel ends
 * must stay.
 */
const TAKEN = ['kill', '_kill', '_debugProcess', '_debugEnd', 'send', '_send', 'setuid', 'setgid', 'seteuid', 'setegid', 'chdir', 'umask'];

/**
 * The channel to the host, for the kernel's part of the process alone: inside the walls no plugin finds it, so that none floods the host.
 * To be called before any code of a plugin is loaded.
 */
export function takeChannel({ walled }: { walled: boolean }): ChildChannel {
  const { _send } = process as unknown as { _send?: RawSend };
  const send = _send?.bind(process);
  if (walled) {
    const denied = () => {
      throw Object.assign(new Error('A plugin reaches no other process.'), { code: 'ERR_ACCESS_DENIED' });
    };
    for (const name of TAKEN)
      if (name in process) Object.defineProperty(process, name, { value: denied, writable: false, configurable: false });
  }
  return {
    say: message => {
      if (process.connected) send?.(message, undefined, {}, () => undefined);
    },
    close: () => {
      if (process.connected) process.disconnect?.();
    },
  };
}
