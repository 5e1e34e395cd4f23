import { isIP, isIPv4 } from 'node:net';
import { domainToASCII } from 'node:url';
import { isLocalName, normalName } from './name-classification.ts';

export interface Identifier {
  readonly type: 'dns' | 'ip';
  readonly value: string;
}
export type Classification = 'local' | 'external';

/** Why identifiers cannot be ordered: the ACME error of it, and words for the client. */
export interface Unorderable {
  readonly refused: 'malformed_request' | 'rejected_identifier' | 'unsupported_identifier';
  readonly detail: string;
}
export interface Orderable {
  readonly classification: Classification;
  readonly identifiers: readonly Identifier[];
}

const MOST = 100;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * What an order asks for, by rule and never by lookup (doc3, certificate authority 3; G-ACME-02): normal names without copies and the one
 * class they share. The answer depends on nothing but its input, so that finalize can ask again (CA-020).
 */
export function classify(
  asked: readonly { readonly type: string; readonly value: string }[],
  suffixes: readonly string[],
): Orderable | Unorderable {
  if (asked.length < 1 || asked.length > MOST) return { refused: 'malformed_request', detail: `An order names 1 to ${MOST} identifiers.` };
  const identifiers = new Map<string, Identifier>();
  const classes = new Set<Classification>();
  for (const { type, value } of asked) {
    const read = readIdentifier(type, value);
    if ('refused' in read) return read;
    identifiers.set(`${read.type}:${read.value}`, read);
    classes.add(isLocalName(read.value, suffixes) ? 'local' : 'external');
  }
  if (classes.size > 1)
    return { refused: 'malformed_request', detail: 'An order has local names or external ones, never both. Make two orders.' };
  const [classification = 'external'] = classes;
  if (classification === 'external') {
    const odd = [...identifiers.values()].find(({ type, value }) => type === 'ip' || value.startsWith('*.'));
    if (odd)
      return {
        refused: 'rejected_identifier',
        detail: `${odd.value} is external: only host names without a wildcard can be proven there (HTTP-01).`,
      };
  }
  return { classification, identifiers: [...identifiers.values()] };
}

function readIdentifier(type: string, given: string): Identifier | Unorderable {
  const value = normalName(given);
  if (type === 'ip') {
    const address = addressOf(value);
    return address === undefined ? { refused: 'malformed_request', detail: `${shown(given)} is no IP address.` } : { type, value: address };
  }
  if (type !== 'dns') return { refused: 'unsupported_identifier', detail: `Identifiers are of type dns or ip, not ${shown(type)}.` };
  // A client of the field sends IP literals as names; they are addresses all the same.
  const literal = addressOf(value);
  if (literal !== undefined) return { type: 'ip', value: literal };
  return isHostName(value)
    ? { type, value }
    : {
        refused: 'rejected_identifier',
        detail: `${shown(given)} is no host name in ASCII (A-labels), with at most one wildcard as its first label.`,
      };
}

function isHostName(name: string): boolean {
  if (name.length > 253) return false;
  const labels = name.replace(/^\*\./, '').split('.');
  // Numbers alone at the end would be read as an address by others.
  if (!labels.every(label => LABEL.test(label)) || /^\d+$/.test(labels.at(-1) as string)) return false;
  return domainToASCII(labels.join('.')) === labels.join('.');
}

/** The one spelling of an address. */
function addressOf(text: string): string | undefined {
  if (isIPv4(text)) return text;
  return isIP(text) === 6 && !text.includes('%') ? new URL(`http://[${text}]/`).hostname.slice(1, -1) : undefined;
}

const shown = (text: string) => JSON.stringify(text.slice(0, 100));
