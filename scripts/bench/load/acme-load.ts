import { generateKeyPairSync, sign } from 'node:crypto';
import { Agent, request } from 'node:https';

/** What the load of one ACME server is told, as JSON in its only argument. */
export interface Load {
  readonly port: number;
  /** As the server is called: its URLs begin with it. */
  readonly host: string;
  readonly servername: string;
  readonly directory: string;
  readonly ca: string;
  readonly orders: number;
  readonly atOnce: number;
  /** The request of every order, base64url: all ask for the same name. */
  readonly csr: string;
  readonly name: string;
}
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

const load = JSON.parse(process.argv[2] ?? '{}') as Load;
const agent = new Agent({ keepAlive: true, maxSockets: load.atOnce, ca: load.ca, servername: load.servername });
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const nonces: string[] = [];

function send(method: string, url: string, body?: string): Promise<Answer> {
  const { pathname } = new URL(url);
  return new Promise((resolve, reject) => {
    const headers = {
      host: load.host,
      ...(body === undefined ? {} : { 'content-type': 'application/jose+json', 'content-length': Buffer.byteLength(body) }),
    };
    const asked = request({ host: '127.0.0.1', port: load.port, path: pathname, method, agent, headers }, answer => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', reject);
      answer.on('end', () => {
        const nonce = answer.headers['replay-nonce'];
        if (typeof nonce === 'string') nonces.push(nonce);
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: Buffer.concat(chunks).toString('utf8') });
      });
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

const encoded = (value: object | undefined) => (value === undefined ? '' : Buffer.from(JSON.stringify(value)).toString('base64url'));

/** Signed; tried again for what a busy server asks to be tried again for. */
async function post(places: Record<string, string>, url: string, payload: object | undefined, signer: object): Promise<Answer> {
  for (;;) {
    if (nonces.length === 0) await send('HEAD', places['newNonce'] as string);
    const protect = encoded({ alg: 'ES256', nonce: nonces.pop(), url, ...signer });
    const text = `${protect}.${encoded(payload)}`;
    const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
    const answer = await send('POST', url, JSON.stringify({ protected: protect, payload: encoded(payload), signature }));
    if (answer.status < 400) return answer;
    if (!answer.text.includes('badNonce')) throw new Error(`${url} answered ${answer.status} ${answer.text}`);
  }
}

async function order(places: Record<string, string>, kid: string): Promise<void> {
  const ask = async (url: string, payload?: object) => post(places, url, payload, { kid });
  const made = await ask(places['newOrder'] as string, { identifiers: [{ type: 'dns', value: load.name }] });
  const { authorizations, finalize } = JSON.parse(made.text) as { authorizations: string[]; finalize: string };
  for (const url of authorizations) {
    const { status, challenges } = JSON.parse((await ask(url)).text) as { status: string; challenges: { type: string; url: string }[] };
    // A server may know the name from before.
    if (status !== 'pending') continue;
    await ask(challenges.find(({ type }) => type === 'http-01')?.url as string, {});
    while ((JSON.parse((await ask(url)).text) as { status: string }).status === 'pending');
  }
  let state = JSON.parse((await ask(finalize, { csr: load.csr })).text) as { status: string; certificate?: string };
  while (state.certificate === undefined) state = JSON.parse((await ask(made.headers['location'] as string)).text) as typeof state;
  if (!(await ask(state.certificate)).text.includes('BEGIN CERTIFICATE')) throw new Error('no certificate came');
}

const places = JSON.parse((await send('GET', `https://${load.host}${load.directory}`)).text) as Record<string, string>;
const account = await post(
  places,
  places['newAccount'] as string,
  { termsOfServiceAgreed: true },
  { jwk: publicKey.export({ format: 'jwk' }) },
);
const kid = account.headers['location'] as string;
const run = async (count: number) => {
  let left = count;
  await Promise.all(
    Array.from({ length: load.atOnce }, async () => {
      while (left-- > 0) await order(places, kid);
    }),
  );
};
await run(Math.ceil(load.orders / 5));
process.send?.('warm');
const began = performance.now();
await run(load.orders);
process.send?.({ perSecond: (load.orders * 1_000) / (performance.now() - began) });
agent.destroy();
process.disconnect?.();
