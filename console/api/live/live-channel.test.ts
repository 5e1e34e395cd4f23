import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LiveChannel, type LiveEvent } from './live-channel.ts';
import { LogRing } from './log-ring.ts';

class FakeSocket {
  readyState = 0;
  sent: unknown[] = [];
  onopen: (() => void) | undefined;
  onmessage: ((event: { data: string }) => void) | undefined;
  onclose: ((event: { code: number }) => void) | undefined;
  send(text: string) {
    this.sent.push(JSON.parse(text));
  }
  close() {}
  accept() {
    this.readyState = 1;
    this.onopen?.();
  }
  say(frame: unknown) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  drop(code: number) {
    this.readyState = 3;
    this.onclose?.({ code });
  }
}

let sockets: FakeSocket[];
let channel: LiveChannel;

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  channel = new LiveChannel({
    url: 'wss://x/ws',
    log: new LogRing(),
    random: () => 1,
    connect: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
  });
});
afterEach(() => vi.useRealTimers());

test('CON-037 after connecting it subscribes to every wanted type, and again after a reconnect', () => {
  channel.subscribe(['a:b:c:d', 'e:*'], () => undefined);
  channel.open();
  sockets[0]?.accept();
  expect(sockets[0]?.sent).toEqual([{ action: 'subscribe', types: ['a:b:c:d', 'e:*'] }]);
  sockets[0]?.drop(1006);
  vi.advanceTimersByTime(1000);
  sockets[1]?.accept();
  expect(sockets[1]?.sent).toEqual([{ action: 'subscribe', types: ['a:b:c:d', 'e:*'] }]);
});

test('CON-039 each failure doubles the wait, and a frame of the server resets it', () => {
  channel.open();
  for (const wait of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    const before = sockets.length;
    sockets.at(-1)?.drop(1006);
    vi.advanceTimersByTime(wait - 1);
    expect(sockets.length).toBe(before);
    vi.advanceTimersByTime(1);
    expect(sockets.length).toBe(before + 1);
  }
  sockets.at(-1)?.accept();
  sockets.at(-1)?.say({ type: 'ping' });
  expect(sockets.at(-1)?.sent.at(-1)).toEqual({ action: 'pong' });
  sockets.at(-1)?.drop(1006);
  const before = sockets.length;
  vi.advanceTimersByTime(1000);
  expect(sockets.length).toBe(before + 1);
});

test('a session that ended is not reconnected', () => {
  channel.open();
  sockets[0]?.accept();
  sockets[0]?.drop(4401);
  vi.advanceTimersByTime(60_000);
  expect(channel.state).toBe('ended');
  expect(sockets).toHaveLength(1);
});

test('events reach whoever asked for them; what nobody wants any more is unsubscribed', () => {
  const heard: LiveEvent[] = [];
  const stop = channel.subscribe(['a:*'], (event) => heard.push(event));
  channel.subscribe(['b:c:d:e'], () => undefined);
  channel.open();
  sockets[0]?.accept();
  sockets[0]?.say({ type: 'a:x:y:z', payload: 1 });
  sockets[0]?.say({ type: 'b:c:d:e' });
  expect(heard.map(({ type }) => type)).toEqual(['a:x:y:z']);
  stop();
  expect(sockets[0]?.sent.at(-1)).toEqual({ action: 'unsubscribe', types: ['a:*'] });
});
