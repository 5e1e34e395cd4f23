import { windowsOf } from './windows.ts';

/** Where in a request a value stood. */
export type Place = 'path' | 'query' | 'header' | 'referer' | 'cookie' | 'body' | 'file name';
export interface RequestValue {
  readonly place: Place;
  /** The parameter, header or member; empty for what has no name. */
  readonly name: string;
  readonly value: string;
}
export interface ScreenedRequest {
  /** The target as it came, still encoded. */
  readonly target: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** What was read of the body, at most the cap. */
  readonly body?: Uint8Array;
}

const DEEPEST = 32;
/** Headers whose grammar leaves no room for anything else, or that are read by the transport alone. */
const PASSED_OVER = new Set([
  'host',
  'accept',
  'accept-encoding',
  'accept-language',
  'accept-charset',
  'content-length',
  'content-type',
  'connection',
  'cache-control',
  'date',
  'expect',
  'if-match',
  'if-none-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'keep-alive',
  'pragma',
  'proxy-connection',
  'range',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'upgrade-insecure-requests',
  'dpop',
  'authorization',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-extensions',
  'sec-ch-ua',
  'sec-ch-ua-mobile',
  'sec-ch-ua-platform',
  'dnt',
  'priority',
  'traceparent',
  'tracestate',
  'last-event-id',
  'cookie',
]);

/** Everything in a request that a backend may take for somebody's words: names as well as values, long ones in pieces that overlap. */
export function valuesOf({ target, headers, body }: ScreenedRequest): RequestValue[] {
  const values: RequestValue[] = [];
  const add = (place: Place, name: string, value: string) => {
    if (value !== '') for (const look of windowsOf(value)) values.push({ place, name, value: look });
  };
  const mark = target.indexOf('?');
  add('path', '', mark === -1 ? target : target.slice(0, mark));
  if (mark !== -1) form(target.slice(mark + 1), 'query', add);
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || PASSED_OVER.has(name)) continue;
    for (const each of typeof value === 'string' ? [value] : value) add(name === 'referer' ? 'referer' : 'header', name, each);
  }
  cookies(headers['cookie'], add);
  if (body && body.length > 0) bodyValues(headers['content-type'], Buffer.from(body.buffer, body.byteOffset, body.byteLength), add);
  return values;
}

export type Add = (place: Place, name: string, value: string) => void;

function form(text: string, place: Place, add: Add): void {
  for (const pair of text.split('&')) {
    const at = pair.indexOf('=');
    const [name, value] = at === -1 ? ['', pair] : [pair.slice(0, at), pair.slice(at + 1)];
    const spaced = (part: string) => part.replaceAll('+', ' ');
    add(place, 'name', spaced(name));
    add(place, name, spaced(value));
  }
}

function cookies(header: string | readonly string[] | undefined, add: Add): void {
  const text = typeof header === 'string' ? header : (header ?? []).join('; ');
  for (const pair of text.split(';')) {
    const at = pair.indexOf('=');
    const name = (at === -1 ? pair : pair.slice(0, at)).trim();
    add('cookie', 'name', name);
    if (at !== -1) add('cookie', name, pair.slice(at + 1));
  }
}

function bodyValues(contentType: string | readonly string[] | undefined, body: Buffer, add: Add): void {
  const type = (typeof contentType === 'string' ? contentType : (contentType?.[0] ?? '')).toLowerCase();
  const text = body.toString('utf8');
  if (type.includes('multipart/')) return multipart(type, text, add);
  if (type.includes('json')) {
    try {
      return json(JSON.parse(text), '', add, 0);
    } catch {
      return add('body', '', text);
    }
  }
  if (type.includes('xml')) return xml(text, add);
  if (type.includes('x-www-form-urlencoded')) return form(text.trimEnd(), 'body', add);
  // Without a type, a backend that guesses takes it for a form.
  if (type === '' && /^[\w%.[\]$*-]*=|%[0-9a-f]{2}|\+/i.test(text)) form(text.trimEnd(), 'body', add);
  else if (/^(?:text\/|$)/.test(type)) add('body', '', text);
}

function json(node: unknown, name: string, add: Add, depth: number): void {
  if (typeof node === 'string') return add('body', name, node);
  if (typeof node !== 'object' || node === null || depth > DEEPEST) return;
  for (const [key, value] of Object.entries(node)) {
    if (!Array.isArray(node)) add('body', 'name', key);
    json(value, Array.isArray(node) ? name : key, add, depth + 1);
  }
}

/** Texts and attributes; a document type is a value by itself, since a parser acts on it. */
export function xml(text: string, add: Add): void {
  for (const [doctype] of text.matchAll(/<!(?:DOCTYPE|ENTITY)[^>]{0,2000}>?/gi)) add('body', 'doctype', doctype);
  for (const [, double, single] of text.matchAll(/=\s*(?:"([^"]*)"|'([^']*)')/g)) add('body', 'attribute', double ?? single ?? '');
  for (const [, inner] of text.matchAll(/>([^<]+)</g)) if (inner?.trim()) add('body', 'text', inner);
}

function multipart(type: string, text: string, add: Add): void {
  const boundary = /boundary="?([^";]+)/i.exec(type)?.[1];
  const parts = boundary ? text.split(new RegExp(`--${boundary.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)}`, 'i')) : [text];
  for (const part of parts) {
    const end = /\r?\n\r?\n/.exec(part);
    const { name, file } = partOf(end ? part.slice(0, end.index) : part, add);
    // The bytes of a file are somebody's document, not a parameter.
    if (end && !file) add('body', name, part.slice(end.index + end[0].length).replace(/\r?\n$/, ''));
  }
}

/** What the head of a part names, each name a value by itself. */
export function partOf(head: string, add: Add): { readonly name: string; readonly file: boolean } {
  const file = /filename\*?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\r\n]+))/i.exec(head);
  const name = /[^e]name\s*=\s*(?:"([^"]*)"|([^;\r\n]+))/i.exec(head);
  if (file) add('file name', 'filename', file[1] ?? file[2] ?? '');
  if (name) add('body', 'name', name[1] ?? name[2] ?? '');
  return { name: name?.[1] ?? name?.[2] ?? '', file: file !== null };
}
