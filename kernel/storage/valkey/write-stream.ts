import type { ValkeyBridge } from './bridge.ts';
import { FirstLine, rawConnection, wire } from './raw-connection.ts';

/** The server takes a follower that says nothing for a minute for dead. */
const ACKNOWLEDGE_MS = 1_000;

/** Everything the server writes, as it tells its replicas: deterministic commands, in one numbered stream of bytes. */
export interface WriteStream {
  /** What has been said since; begun before a snapshot and read after it, nothing is missing behind the snapshot. */
  since(): { from(offset: number): Buffer[]; [Symbol.dispose](): void };
}

/**
 * Follows the stream from where it stands. `said` hears its bytes; `lost` that the server ended it, which it does for no reason we know.
 */
export async function followWrites(bridge: ValkeyBridge, said: (bytes: Buffer) => void, lost: () => void): Promise<WriteStream> {
  const { id, offset } = await streamPlace(bridge);
  let heard = offset;
  const kept = new Set<{ offset: number; bytes: Buffer }[]>();
  const first = new FirstLine(bytes => {
    for (const list of kept) list.push({ offset: heard, bytes });
    heard += bytes.length;
    said(bytes);
  });
  const connection = rawConnection(
    bridge,
    bytes => first.hear(bytes),
    () => (first.closed(), lost()),
  );
  connection.send(wire('PSYNC', id, String(offset + 1)));
  const line = await first.line;
  if (!line.startsWith('+CONTINUE')) throw new Error(`the server gives no stream of its writes: ${line}`);
  setInterval(() => connection.send(wire('REPLCONF', 'ACK', String(heard))), ACKNOWLEDGE_MS).unref();
  return {
    since: () => {
      const list: { offset: number; bytes: Buffer }[] = [];
      kept.add(list);
      return {
        from: place =>
          list
            .filter(({ offset: at, bytes }) => at + bytes.length > place)
            .map(({ offset: at, bytes }) => bytes.subarray(Math.max(0, place - at))),
        [Symbol.dispose]: () => void kept.delete(list),
      };
    },
  };
}

/**
 * Where the stream stands. There is none until somebody has asked for it: the first one is refused, for want of a fork, and leaves it
 * behind.
 */
async function streamPlace(bridge: ValkeyBridge): Promise<{ id: string; offset: number }> {
  const known = await replication(bridge);
  if (known.active) return known;
  const first = new FirstLine();
  const asking = rawConnection(
    bridge,
    bytes => first.hear(bytes),
    () => first.closed(),
  );
  asking.send(wire('PSYNC', '?', '-1'));
  await first.line.catch(() => undefined);
  asking.end();
  const made = await replication(bridge);
  if (!made.active) throw new Error('the server keeps no stream of its writes');
  return made;
}

async function replication({ internal }: ValkeyBridge): Promise<{ id: string; offset: number; active: boolean }> {
  const text = await internal.command('INFO', 'replication');
  const value = (name: string) => new RegExp(`^${name}:(\\w+)\r?$`, 'm').exec(text)?.[1] ?? '';
  return { id: value('master_replid'), offset: Number(value('master_repl_offset')), active: value('repl_backlog_active') === '1' };
}
