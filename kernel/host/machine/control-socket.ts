import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { ControlAnswer, ControlRequest, Logger } from '@platform/sdk';
import { systemClock } from '../../base/clock.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { writeEventStream } from '../../http/doors/event-stream.ts';
import { parseJson } from '../../http/doors/exchange.ts';
import { type BodyBounds, RequestBody } from '../../http/doors/request-body.ts';
import { peerUid } from './peer-credentials.ts';

const MAX_BODY = 1_048_576;
const MAX_CONNECTIONS = 64;
const HEADERS_MS = 5_000;
const REQUEST_MS = 10_000;

/** Where operators of this machine find the supervisor. */
export const controlSocketPath = ({
  dataDir,
  environment,
}: {
  readonly dataDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}): string => join(environment['PLATFORM_RUN_DIR'] || join(dataDir, 'run'), 'captain.sock');

/** A socket of this machine on which its operators talk to the supervisor; who they are, the system says. */
export class ControlSocket implements AsyncDisposable {
  readonly #server: Server;
  readonly #path: string;
  readonly #log: Logger;

  private constructor(path: string, server: Server, log: Logger) {
    this.#path = path;
    this.#server = server;
    this.#log = log;
  }

  static async open(path: string, handle: (request: ControlRequest) => Promise<ControlAnswer>, log: Logger): Promise<ControlSocket> {
    // What an earlier supervisor left; the lock of the data directory says that none lives.
    rmSync(path, { force: true });
    const server = createServer((req, res) => void answer(req, res, handle).catch(error => fail(res, error, log)));
    server.maxConnections = MAX_CONNECTIONS;
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = REQUEST_MS;
    const umask = process.umask(0o177);
    try {
      await new Promise<void>((resolve, reject) => server.once('error', reject).listen(path, resolve));
    } finally {
      process.umask(umask);
    }
    chmodSync(path, 0o600);
    return new ControlSocket(path, server, log);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
    rmSync(this.#path, { force: true });
    this.#log.debug({ path: this.#path }, 'the control socket is closed');
  }
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  handle: (request: ControlRequest) => Promise<ControlAnswer>,
): Promise<void> {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  // Unknown is nobody: its handler denies.
  const uid = await peerUid(req.socket).catch(() => undefined);
  const url = new URL(req.url ?? '/', 'http://socket');
  const body = parseJson(await new RequestBody(req, systemClock).bytes(BOUNDS), undefined, 'any');
  const given = await handle({
    method: req.method ?? 'GET',
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    body,
    uid,
    ownUid: process.getuid?.() ?? -1,
    signal: gone.signal,
  });
  if (!given.items) {
    const text = given.body === undefined ? '' : JSON.stringify(given.body);
    res
      .writeHead(given.status, {
        'content-type': given.status >= 400 ? 'application/problem+json' : 'application/json',
        'content-length': Buffer.byteLength(text),
      })
      .end(text);
    return;
  }
  await writeEventStream(res, given.items, { signal: gone.signal, clock: systemClock });
}

const BOUNDS: BodyBounds = {
  limit: MAX_BODY,
  withinMs: REQUEST_MS,
  tooLarge: () => kernelProblem('body_too_large', { detail: 'the body is too large' }),
  tooSlow: () => kernelProblem('body_timeout', { detail: 'the body did not come in time' }),
};

function fail(res: ServerResponse, error: unknown, log: Logger): void {
  const status = (error as { status?: number }).status ?? 500;
  if (status >= 500) log.error({ err: error }, 'a request of the control socket could not be answered');
  if (res.headersSent) return void res.destroy();
  const text = JSON.stringify({
    type: 'about:blank',
    title: status >= 500 ? 'Something went wrong on our side' : String((error as Error).message),
    status,
    code: status >= 500 ? 'internal' : 'malformed',
  });
  res
    .writeHead(status, { 'content-type': 'application/problem+json', 'content-length': Buffer.byteLength(text), connection: 'close' })
    .end(text);
}
