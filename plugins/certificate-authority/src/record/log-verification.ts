import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { CertificateStore } from '../certificates/certificate-store.ts';
import { entryHash, GENESIS, headText, type IssuanceLog, type LogEntry } from './issuance-log.ts';
import type { LogKeys } from './log-keys.ts';

export interface LogFault {
  readonly kind: 'broken_chain' | 'false_head' | 'cut' | 'not_logged' | 'changed' | 'missing' | 'revocation';
  readonly detail: string;
}
export interface LogVerdict {
  readonly entries: number;
  readonly certificates: number;
  readonly head: string;
  readonly key_id: string;
  readonly faults: readonly LogFault[];
}

const MOST_FAULTS = 20;

/**
 * Proves the log against itself, its signed head, and the certificates that are kept: none is there that the log does not name, none is
 * gone, changed or revoked beside it. Up to twenty faults are named.
 */
export async function verifyLog(log: IssuanceLog, keys: LogKeys, store: CertificateStore): Promise<LogVerdict> {
  await log.settled();
  const faults: LogFault[] = [];
  const add = (kind: LogFault['kind'], detail: string) => void (faults.length < MOST_FAULTS && faults.push({ kind, detail }));
  const head = await log.head();
  const logged = new Map<string, { id: string; revoked: boolean }>();
  let [seq, hash, headSeen] = [0, GENESIS, head === undefined || head.seq === 0];
  for await (const line of linesOf(log.path)) {
    const entry = readEntry(line);
    seq += 1;
    if (!entry || entry.seq !== seq || entry.prev !== hash || entryHash(entry) !== entry.hash) {
      add('broken_chain', `line ${seq} of the log was changed, removed, inserted or reordered`);
      break;
    }
    hash = entry.hash;
    if (head?.seq === seq) headSeen = head.hash === hash;
    if (entry.action === 'revoked') (logged.get(entry.thumbprint) ?? { revoked: false }).revoked = true;
    else logged.set(entry.thumbprint, { id: entry.certificate_id, revoked: false });
  }
  if (faults.length === 0 && !headSeen) add('cut', `the log ends at line ${seq} or differs there; line ${head?.seq} was signed`);
  if (head ? !(await keys.proves(headText(head), head)) : seq > 0) add('false_head', 'the head of the log is not signed by its key');
  const certificates = await compare(store, logged, add);
  return { entries: seq, certificates, head: hash, key_id: keys.current, faults };
}

async function compare(
  store: CertificateStore,
  logged: ReadonlyMap<string, { id: string; revoked: boolean }>,
  add: (kind: LogFault['kind'], detail: string) => void,
): Promise<number> {
  const kept = new Set<string>();
  let count = 0;
  for (const meta of store.all()) {
    count += 1;
    kept.add(meta.thumbprint);
    const entry = logged.get(meta.thumbprint);
    const chain = await store.chain(meta.certificate_id);
    if (!entry) add('not_logged', `${meta.domain} (serial ${meta.serial}) is kept and was never logged`);
    else if (chain === undefined || thumbprintOfChain(chain) !== meta.thumbprint)
      add('changed', `${meta.domain} (serial ${meta.serial}) is not the certificate that was logged`);
    else if (entry.revoked !== meta.revoked)
      add(
        'revocation',
        `${meta.domain} (serial ${meta.serial}) is ${
          meta.revoked ? 'marked as revoked, which was' : 'not marked as revoked, which was'
        } ${meta.revoked ? 'never logged' : 'logged'}`,
      );
  }
  for (const [thumbprint, { id }] of logged) if (!kept.has(thumbprint)) add('missing', `certificate ${id} was logged and is gone`);
  return count;
}

async function* linesOf(path: string): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

function readEntry(line: string): LogEntry | undefined {
  try {
    return JSON.parse(line) as LogEntry;
  } catch {
    return undefined;
  }
}

/** x5t#S256 of the first certificate of a PEM chain, from its bytes alone. */
export function thumbprintOfChain(chain: string): string | undefined {
  const body = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(chain)?.[1];
  return body === undefined ? undefined : createHash('sha256').update(Buffer.from(body, 'base64')).digest('base64url');
}
