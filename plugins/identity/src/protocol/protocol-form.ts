import type { IncomingMessage } from 'node:http';
import type { NodeExchange } from '@platform/sdk';
import { canonicalScope } from '../access/scope-name.ts';

/** As much as the protocol core reads. */
const LIMIT = 56 * 1_024;

/** A form that is refused before the protocol core sees it. */
export class FormRefused extends Error {
  readonly status: number;

  constructor(status: number, description: string) {
    super(description);
    this.status = status;
  }
}

/**
 * The same request with its form looked through. The core takes U+0000 for a character like any other, and the database takes it
 * for an error (F-19). Requests without a form are as they were.
 */
export function formChecked({ req, body: sent }: Pick<NodeExchange, 'req' | 'body'>): IncomingMessage {
  if (req.method !== 'POST' || !/^application\/x-www-form-urlencoded\s*(;|$)/i.test(req.headers['content-type'] ?? '')) return req;
  const body = formOf(sent);
  const canonical = canonicalScopes(body);
  // What is read cannot be read again; the core asks for its parts in this way and no other.
  if (canonical !== body) req.headers['content-length'] = String(canonical.length);
  return Object.create(req, {
    readable: { value: true },
    iterator: {
      value: async function* () {
        yield canonical;
      },
    },
  }) as IncomingMessage;
}

/** The fields of a form that is not the core's. Throws `FormRefused`. */
export function formFields(body: Buffer): URLSearchParams {
  return new URLSearchParams(formOf(body).toString('utf8'));
}

function formOf(body: Buffer): Buffer {
  if (body.length > LIMIT) throw new FormRefused(413, `at most ${LIMIT} bytes`);
  if (/%00|\0/.test(body.toString('latin1'))) throw new FormRefused(400, 'U+0000 is no character of a parameter');
  return body;
}

/** The same query with scopes in the spelling that the core compares them in: both are taken everywhere (G-K-08). */
export function canonicalQuery(url: string): string {
  const [path, query] = [url.split('?', 1)[0] as string, url.slice(url.indexOf('?') + 1)];
  return url.includes('?') ? `${path}?${respelt(query)}` : url;
}

function canonicalScopes(body: Buffer): Buffer {
  const text = body.toString('utf8');
  const spelt = respelt(text);
  return spelt === text ? body : Buffer.from(spelt);
}

function respelt(form: string): string {
  if (!/(^|&)scope=[^&]*platform/.test(form)) return form;
  const fields = new URLSearchParams(form);
  const scopes = fields.getAll('scope');
  fields.delete('scope');
  for (const scope of scopes) fields.append('scope', scope.split(' ').map(canonicalScope).join(' '));
  return fields.toString();
}
