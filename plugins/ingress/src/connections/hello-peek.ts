import type { Socket } from 'node:net';
import { type ClientHello, MAX_HELLO, readClientHello } from './client-hello.ts';

const FIRST_BYTES = 2_048;

/**
 * Reads the whole ClientHello of a connection and puts it back: the next reader sees every byte (ING-030). The socket is paused
 * afterwards. `undefined`: the client said something else, too much, nothing in time, or went away.
 */
export function peekHello(socket: Socket, timeoutMs: number): Promise<ClientHello | undefined> {
  return new Promise(resolve => {
    let [bytes, size] = [Buffer.allocUnsafe(FIRST_BYTES), 0];
    const settle = (hello: ClientHello | undefined) => {
      clearTimeout(late);
      socket.off('data', onData).off('end', gone).off('close', gone).pause();
      if (hello) socket.unshift(Buffer.from(bytes.subarray(0, size)));
      resolve(hello);
    };
    const gone = () => settle(undefined);
    const late = setTimeout(gone, timeoutMs).unref();
    const onData = (chunk: Buffer) => {
      if (size + chunk.length > bytes.length) {
        // What follows the hello in one packet is early data: it is put back as well, and bounded by one read.
        const larger = Buffer.allocUnsafe(Math.max(bytes.length * 2, size + chunk.length));
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      chunk.copy(bytes, size);
      size += chunk.length;
      const hello = readClientHello(bytes.subarray(0, size));
      if (hello === 'more' && size <= MAX_HELLO * 2) return;
      settle(typeof hello === 'string' ? undefined : hello);
    };
    socket.on('data', onData).once('end', gone).once('close', gone);
  });
}
