const brand = Symbol.for('platform.reply');

/** An answer that also says its status or headers; a plain value is enough everywhere else. */
export interface Reply<T> {
  readonly value: T;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Wraps a handler's value with a status or headers. */
export function reply<T>(value: T, options: { status?: number; headers?: Record<string, string> }): Reply<T> {
  return { [brand]: true, value, ...options } as Reply<T>;
}

/** 304: the caller has it already. Say the headers a 200 would have said (RFC 9110, 15.4.5). */
export function notModified(headers: Record<string, string>): Reply<never> {
  return reply(undefined as never, { status: 304, headers });
}

export function isReply(value: unknown): value is Reply<unknown> {
  return typeof value === 'object' && value !== null && brand in value;
}
