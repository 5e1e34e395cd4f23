import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { type FieldFault, type Request, isCorrelationId } from '@platform/sdk';
import { newId } from '../../base/ids.ts';
import { kernelProblem } from '../../base/kernel-problem.ts';
import { type Peer, peerOf } from '../../identity/certificates/tls.ts';
import { characterFaults } from '../schema/schema.ts';

export const CORRELATION_HEADER = 'x-platform-correlation-id';
const MAX_HEADERS = 100;

/** What a listener knows of an exchange before any service sees it. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly url: URL;
  readonly peer: Peer | undefined;
  readonly hostname: string;
  readonly ip: string;
  readonly tenant: Request['tenant'];
  readonly correlationId: string;
}

/** Reads one exchange. Injected headers count only from the ingress's client certificate, never from an address (hardening H-05). */
export function readExchange(req: IncomingMessage, service: string): Exchange {
  const connected = peerOf(req.socket as TLSSocket);
  const header = (name: string) => (typeof req.headers[name] === 'string' ? (req.headers[name] as string) : undefined);
  const ingress = connected?.workload === 'proxy' && header('x-platform-caller-service') === 'proxy';
  // What the ingress forwards is somebody else's request: its certificate vouches for the headers, it is not the caller.
  const peer = ingress ? undefined : connected;
  const host = (connected && header('x-platform-hostname')) ?? header('host') ?? '';
  const given = header(CORRELATION_HEADER);
  const tenant: Record<string, string> = {};
  if (ingress) {
    for (const [member, name] of [
      ['envId', 'x-platform-env-id'],
      ['appInstanceId', 'x-platform-app-id'],
      ['service', 'x-platform-service'],
    ] as const) {
      const value = header(name);
      if (value) tenant[member] = value;
    }
  }
  return {
    req,
    url: targetOf(req.url ?? '/'),
    peer,
    hostname: host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, ''),
    ip: (ingress && header('x-forwarded-for')?.split(',')[0]?.trim()) || (req.socket.remoteAddress ?? '').replace(/^::ffff:/, ''),
    tenant,
    correlationId: isCorrelationId(given) ? given : `${service}-${newId()}`,
  };
}

/** The request target as a URL. A target that starts with `/` is a path, whatever follows: two slashes name no other host. */
function targetOf(target: string): URL {
  return URL.parse(target.startsWith('/') ? `https://internal${target}` : target) ?? new URL('https://internal/');
}

/** Shapes of a request that two servers would read differently, refused before anything else reads them (hardening H-14). */
export function refuseAmbiguous(req: IncomingMessage): void {
  const { rawHeaders } = req;
  if (rawHeaders.length / 2 > MAX_HEADERS)
    throw kernelProblem('headers_too_large', { detail: `At most ${MAX_HEADERS} headers.`, headers: { connection: 'close' } });
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] as string).toLowerCase();
    if (name === 'host') hosts += 1;
    if (name.startsWith('x_platform') || (name.includes('_') && name.replaceAll('_', '-').startsWith('x-platform-'))) {
      throw kernelProblem('malformed', { detail: 'Header names are spelt with hyphens.', headers: { connection: 'close' } });
    }
  }
  if (hosts !== 1 && req.httpVersionMajor < 2)
    throw kernelProblem('malformed', { detail: 'Exactly one Host header.', headers: { connection: 'close' } });
}

/** A body as JSON, by its media type; nothing at all is `undefined`. Anything else is a 4xx that says what to send. */
export function parseJson(body: Uint8Array, type: string | undefined, of?: 'any'): unknown {
  if (body.length === 0) return undefined;
  if (of !== 'any' && !/^application\/(?:[a-z0-9.+-]+\+)?json\s*(?:;|$)/i.test(type ?? '')) {
    throw kernelProblem('unsupported_media_type', { detail: 'Send application/json.' });
  }
  const text = Buffer.from(body.buffer, body.byteOffset, body.length).toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw kernelProblem('malformed', { detail: 'The body is not JSON.' });
  }
  // The parser takes U+0000 and halves of pairs in these forms alone, so that most bodies are looked through once.
  if (/\\u(?:0000|d[89a-f])/i.test(text)) refuseCharacters(characterFaults(value));
  return value;
}

/** Path and query of a request, for doors of every kind. */
export function refuseNulIn({ pathname, search, searchParams }: URL): void {
  if (/%00/.test(pathname)) refuseCharacters([{ pointer: '/path', code: 'nul_character', message: 'contains U+0000' }]);
  if (/%00/.test(search)) refuseCharacters(characterFaults(Object.fromEntries(searchParams), '/query'));
}

function refuseCharacters(errors: readonly FieldFault[]): void {
  if (errors.length > 0)
    throw kernelProblem('validation_failed', {
      extra: { errors },
      detail: 'Text may hold every character but U+0000, and no half of a surrogate pair; errors says where it is.',
    });
}
