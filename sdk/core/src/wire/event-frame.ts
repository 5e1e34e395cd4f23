/** One server-sent event, as it is written; `data` goes out as JSON. */
export function eventFrame({ id, event, data }: { readonly id?: string; readonly event?: string; readonly data: unknown }): string {
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
}
/** What keeps a stream open while nothing happens: a comment, of which nobody who reads events hears. */
export const HEARTBEAT_FRAME = ': heartbeat\n\n';
/** The head of an event stream that nothing on the way stores, changes or holds back. */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
} as const;
