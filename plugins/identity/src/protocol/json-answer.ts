import type { ServerResponse } from 'node:http';

/** Answers JSON that nobody may keep (RFC 6749, 5.1). */
export function answerJson(res: ServerResponse, status: number, value: object, headers: Readonly<Record<string, string>> = {}): void {
  const body = JSON.stringify(value);
  res
    .writeHead(status, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      ...headers,
    })
    .end(body);
}
