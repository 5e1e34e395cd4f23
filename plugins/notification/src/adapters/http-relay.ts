import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { addressOf } from './private-address.ts';
import { type Adapter, DispatchFailure, type GatewaySettings, type Outgoing } from './adapter.ts';

const TIMEOUT_MS = 10_000;
const MAX_ANSWER = 2_000;
const BEARER = /^[\x21-\x7e]{1,4096}$/;

/** E-mail by the HTTP contract of a relay (G-POST-04): 2xx means delivered, a redirect does not. */
export const httpRelay: Adapter = {
  name: 'http-relay',
  async dispatch(outgoing, gateway, secret, signal) {
    const url = new URL(gateway.gateway_url as string);
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const { address, family } = await addressOf(url.hostname, { privateOk: gateway.private_ok }).catch(error => {
      throw new DispatchFailure((error as Error).message);
    });
    const { status, words } = await post(url, { address, family }, bodyOf(outgoing, gateway), headersOf(outgoing, secret), deadline);
    if (status >= 200 && status < 300) return;
    throw new DispatchFailure(`the relay answered ${status}${words ? `: ${words}` : ''}`, {
      permanent: status === 410 || /"bounce"\s*:\s*"permanent"/.test(words),
    });
  },
};

function bodyOf({ to, subject, text, html, headers, messageId }: Outgoing, { config }: GatewaySettings): Buffer {
  return Buffer.from(JSON.stringify({ from: config.from, to, subject, text, html, headers, message_id: messageId }));
}

function headersOf({ deliveryId }: Outgoing, secret: Uint8Array | undefined): Record<string, string> {
  const bearer = secret && Buffer.from(secret.buffer, secret.byteOffset, secret.byteLength).toString('utf8').trim();
  return {
    'content-type': 'application/json',
    'idempotency-key': deliveryId,
    ...(bearer && BEARER.test(bearer) ? { authorization: `Bearer ${bearer}` } : {}),
  };
}

function post(
  url: URL,
  at: { address: string; family: number },
  body: Buffer,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<{ status: number; words: string }> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? tlsRequest : plainRequest;
    // The address that was judged is the one that is connected to.
    const lookup = (_host: string, options: { all?: boolean }, done: (error: null, address: unknown, family?: number) => void) =>
      options.all ? done(null, [at]) : done(null, at.address, at.family);
    const outgoing = send(
      url,
      { method: 'POST', headers: { ...headers, 'content-length': body.byteLength }, signal, agent: false, lookup: lookup as never },
      answer => {
        let words = '';
        answer.setEncoding('utf8');
        answer.on('data', (chunk: string) => {
          words += chunk.slice(0, Math.max(0, MAX_ANSWER - words.length));
        });
        answer.on('error', () => resolve({ status: answer.statusCode ?? 0, words }));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, words }));
      },
    );
    outgoing.on('error', error =>
      reject(
        new DispatchFailure(
          signal.aborted
            ? 'the relay did not answer within 10 s'
            : `the relay could not be reached: ${(error as { code?: string }).code ?? error.message}`,
          { away: true },
        ),
      ),
    );
    outgoing.end(body);
  });
}
