import type { BridgeConnection } from './bridge-connection.ts';

/** Commands from the process that carries the server, over no socket: it can set the password before anybody can connect. */
export interface InternalClient {
  readonly connection: BridgeConnection;
  /** The reply of one command, as text; an error reply throws. */
  command(...words: string[]): Promise<string>;
}

/** `changed` is called when there is something for the server to read. */
export function internalClient(changed: () => void): InternalClient {
  let said = Buffer.alloc(0);
  const waiting: { resolve(text: string): void; reject(error: Error): void }[] = [];
  const connection: BridgeConnection = {
    input: [],
    offset: 0,
    ended: false,
    writable: () => true,
    consumed: () => {},
    destroy: () => {
      for (const { reject } of waiting.splice(0)) reject(new Error('the server closed the internal connection'));
    },
    write: bytes => {
      said = Buffer.concat([said, bytes]);
      for (let reply = takeReply(said); reply !== null; reply = takeReply(said)) {
        said = said.subarray(reply.length);
        const { resolve, reject } = waiting.shift() ?? { resolve: () => {}, reject: () => {} };
        if (reply.error) reject(new Error(reply.text));
        else resolve(reply.text);
      }
    },
  };
  return {
    connection,
    command: (...words) =>
      new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
        connection.input.push(
          Buffer.from(`*${words.length}\r\n${words.map(word => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`),
        );
        changed();
      }),
  };
}

/** The first complete reply of the buffer. Only the kinds that the commands used here answer with. */
function takeReply(bytes: Buffer): { text: string; error: boolean; length: number } | null {
  const end = bytes.indexOf('\r\n');
  if (end < 0) return null;
  const line = bytes.toString('utf8', 1, end);
  if (bytes[0] !== 0x24 /* $ */) return { text: line, error: bytes[0] === 0x2d /* - */, length: end + 2 };
  const size = Math.max(0, Number(line));
  if (bytes.length < end + 2 + size + 2) return null;
  return { text: bytes.toString('utf8', end + 2, end + 2 + size), error: false, length: end + 2 + size + 2 };
}
