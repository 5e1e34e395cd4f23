import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LiveChannel, type LiveEvent, MISSED } from './live-channel.ts';
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
  closed = false;
  close() {
    this.closed = true;
  }
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

describe('what may have gone unheard', () => {
  let told: number;
  const heard: string[] = [];
  const listen = (types: string[]) => channel.subscribe(types, ({ type }) => heard.push(`${types} ${type}`));
  beforeEach(() => {
    told = 0;
    heard.length = 0;
    channel.whenMissed(() => told++);
  });

  test('H-22 a lag of the gateway has everything read again', () => {
    listen(['a:*']);
    channel.open();
    sockets[0]?.accept();
    sockets[0]?.say({ type: 'subscribed', types: ['a:*'] });
    heard.length = 0;
    sockets[0]?.say({ type: 'lag', skipped: 3, from: 'x', to: 'y' });
    expect([told, heard]).toEqual([1, []]);
  });

  test('H-22 who subscribed before the gateway listened reads again, once, when it does', () => {
    listen(['a:*', 'b:*']);
    channel.open();
    sockets[0]?.accept();
    expect(heard).toEqual([]);
    sockets[0]?.say({ type: 'subscribed', types: ['a:*', 'b:*'] });
    expect([heard, told]).toEqual([[`a:*,b:* ${MISSED}`], 0]);
    // The types are heard already: who reads from now on misses nothing.
    listen(['b:*']);
    expect(heard).toHaveLength(1);
    // A page that opens later asks for types of its own.
    listen(['b:*', 'c:*']);
    sockets[0]?.say({ type: 'subscribed', types: ['a:*', 'b:*', 'c:*'] });
    expect(heard).toEqual([`a:*,b:* ${MISSED}`, `b:*,c:* ${MISSED}`]);
  });

  test('H-22 an answer to what was asked before says nothing of what was asked since', () => {
    channel.open();
    sockets[0]?.accept();
    const stop = listen(['a:*']);
    stop();
    listen(['a:*']);
    sockets[0]?.say({ type: 'subscribed', types: ['a:*'] });
    sockets[0]?.say({ type: 'subscribed', types: [] });
    expect(heard).toEqual([]);
    sockets[0]?.say({ type: 'subscribed', types: ['a:*'] });
    expect(heard).toEqual([`a:* ${MISSED}`]);
  });

  test('H-22 after an interruption everything is read again, and not before the gateway listens', () => {
    listen(['a:*']);
    channel.open();
    sockets[0]?.accept();
    sockets[0]?.say({ type: 'subscribed', types: ['a:*'] });
    heard.length = 0;
    sockets[0]?.drop(1006);
    vi.advanceTimersByTime(1000);
    sockets[1]?.accept();
    expect(told).toBe(0);
    sockets[1]?.say({ type: 'subscribed', types: ['a:*'] });
    expect([told, heard]).toEqual([1, []]);
  });

  test('H-22 a subscription that is refused does not hold up who waits for another', () => {
    channel.open();
    sockets[0]?.accept();
    sockets[0]?.drop(1006);
    listen(['a:*']);
    vi.advanceTimersByTime(1000);
    sockets[1]?.accept();
    sockets[1]?.say({ type: 'error', code: 'malformed' });
    expect(told).toBe(1);
  });

  test('H-22 a connection that has been silent for a minute is a dead one', () => {
    channel.open();
    sockets[0]?.accept();
    vi.advanceTimersByTime(59_000);
    sockets[0]?.say({ type: 'ping' });
    vi.advanceTimersByTime(59_000);
    expect(channel.state).toBe('connected');
    vi.advanceTimersByTime(1_000);
    expect([channel.state, sockets[0]?.closed]).toEqual(['reconnecting', true]);
    vi.advanceTimersByTime(1_000);
    expect(sockets).toHaveLength(2);
    // What the dead one says late belongs to nobody.
    sockets[0]?.say({ type: 'lag', skipped: 1 });
    expect(told).toBe(0);
  });
});
