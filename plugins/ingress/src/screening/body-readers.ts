import { type Add, partOf, xml } from './request-values.ts';
import { Windows } from './windows.ts';

/** Finds the values of a body while it comes; keeps a few KiB of it at most. */
export interface BodyReader {
  push(text: string): void;
  /** Looks at what is under way as well. */
  look(): void;
  end(): void;
}

const LONGEST_HEAD = 8_192;

/**
 * The reader for a body of this type, as a backend would read it; undefined where the bytes are somebody's document. `begun` is how it
 * begins.
 */
export function readerOf(contentType: string, begun: string, add: Add): BodyReader | undefined {
  const type = contentType.toLowerCase();
  const boundary = /boundary="?([^";]+)/i.exec(contentType)?.[1];
  if (type.includes('multipart/')) return boundary ? new PartsReader(boundary, add) : textReader(add);
  if (type.includes('json')) return new JsonReader(add);
  if (type.includes('xml')) return new XmlReader(add);
  if (type.includes('x-www-form-urlencoded')) return new FormReader(add);
  if (type === '') return /^[\w%.[\]$*-]*=/.test(begun) ? new FormReader(add) : textReader(add);
  return type.startsWith('text/') ? textReader(add) : undefined;
}

const textReader = (add: Add): BodyReader => new Windows(look => add('body', '', look));

class FormReader implements BodyReader {
  readonly #name: Windows;
  readonly #value: Windows;
  #label = '';
  #named = false;

  constructor(add: Add) {
    const spaced = (text: string) => text.replaceAll('+', ' ');
    this.#name = new Windows(look => add('body', 'name', spaced(look)));
    this.#value = new Windows(look => add('body', this.#label, spaced(look)));
  }

  push(text: string): void {
    for (const [index, part] of text.split('&').entries()) {
      if (index > 0) this.end();
      const at = this.#named ? -1 : part.indexOf('=');
      if (this.#named) this.#value.push(part);
      else {
        const name = at === -1 ? part : part.slice(0, at);
        this.#label = (this.#label + name).slice(0, 100);
        this.#name.push(name);
      }
      if (at === -1) continue;
      this.#named = true;
      this.#value.push(part.slice(at + 1));
    }
  }

  look(): void {
    this.#name.look();
    this.#value.look();
  }

  end(): void {
    this.#name.end();
    this.#value.end();
    this.#label = '';
    this.#named = false;
  }
}

const ENDS = /["\\]/g;
const ESCAPES: ReadonlyMap<string, string> = new Map(Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }));

/** Strings are members' names where a colon follows them, else values; what stands between them and is not JSON is a value as well. */
class JsonReader implements BodyReader {
  readonly #add: Add;
  readonly #string: Windows;
  readonly #between: Windows;
  #label = '';
  #pending: string | undefined;
  #inside = false;
  /** An escape whose end has not come. */
  #cut = '';

  constructor(add: Add) {
    this.#add = add;
    this.#string = new Windows(look => {
      this.#settle(false);
      this.#pending = look;
    });
    this.#between = new Windows(look => /[^\s{}[\],:\d.eE+\-truefalsn]/.test(look) && add('body', '', look));
  }

  push(chunk: string): void {
    const text = this.#cut + chunk;
    this.#cut = '';
    for (let at = 0; at < text.length; ) at = this.#inside ? this.#content(text, at) : this.#structure(text, at);
  }

  look(): void {
    this.#between.look();
    this.#string.look();
    if (this.#inside) this.#settle(false);
    else if (this.#pending !== undefined) this.#add('body', this.#label, this.#pending);
  }

  end(): void {
    this.#string.end();
    this.#between.end();
    this.#settle(false);
  }

  /** Up to the end of a string, to its next escape, or to the end of what has come; says where it got to. */
  #content(text: string, from: number): number {
    ENDS.lastIndex = from;
    const at = ENDS.exec(text)?.index ?? -1;
    if (at === -1) {
      this.#string.push(text.slice(from));
      return text.length;
    }
    this.#string.push(text.slice(from, at));
    if (text[at] === '"') {
      this.#inside = false;
      this.#string.end();
      return at + 1;
    }
    const size = text[at + 1] === 'u' ? 6 : 2;
    if (text.length - at < size) {
      this.#cut = text.slice(at);
      return text.length;
    }
    const letter = text[at + 1] as string;
    const code = Number.parseInt(text.slice(at + 2, at + 6), 16);
    this.#string.push(size === 2 ? (ESCAPES.get(letter) ?? letter) : Number.isNaN(code) ? '' : String.fromCharCode(code));
    return at + size;
  }

  #structure(text: string, from: number): number {
    const at = text.indexOf('"', from);
    const between = text.slice(from, at === -1 ? undefined : at);
    const first = between.trimStart()[0];
    if (first !== undefined) this.#settle(first === ':');
    this.#between.push(between);
    if (at === -1) return text.length;
    this.#between.end();
    this.#inside = true;
    return at + 1;
  }

  #settle(isName: boolean): void {
    const said = this.#pending;
    this.#pending = undefined;
    if (said === undefined) return;
    if (isName) this.#label = said.slice(0, 100);
    this.#add('body', isName ? 'name' : this.#label, said);
  }
}

/** One tag and the text behind it at a time; what is longer is read as text. */
class XmlReader implements BodyReader {
  readonly #add: Add;
  readonly #long: Windows;
  #piece = '';

  constructor(add: Add) {
    this.#add = add;
    this.#long = new Windows(look => add('body', 'text', look));
  }

  push(text: string): void {
    for (const [index, part] of text.split('<').entries()) {
      if (index > 0) this.end();
      this.#piece += part;
      if (this.#piece.length <= LONGEST_HEAD) continue;
      this.#long.push(this.#piece);
      this.#piece = '';
    }
  }

  look(): void {
    xml(`<${this.#piece}<`, this.#add);
    this.#long.look();
  }

  end(): void {
    xml(`<${this.#piece}<`, this.#add);
    this.#long.push(this.#piece);
    this.#long.end();
    this.#piece = '';
  }
}

class PartsReader implements BodyReader {
  readonly #add: Add;
  readonly #delimiter: string;
  readonly #value: Windows;
  #text = '';
  #label = '';
  #reading: 'head' | 'value' | 'file' = 'value';

  constructor(boundary: string, add: Add) {
    this.#add = add;
    this.#delimiter = `--${boundary}`;
    this.#value = new Windows(look => add('body', this.#label, look));
  }

  push(text: string): void {
    this.#text += text;
    while (this.#reading === 'head' ? this.#head() : this.#content());
  }

  look(): void {
    if (this.#reading === 'head') partOf(this.#text, this.#add);
    else this.#value.look();
  }

  end(): void {
    if (this.#reading === 'value') this.#value.push(this.#text);
    else if (this.#reading === 'head') partOf(this.#text, this.#add);
    this.#value.end();
    this.#text = '';
  }

  #head(): boolean {
    const end = /\r?\n\r?\n/.exec(this.#text);
    if (!end && this.#text.length <= LONGEST_HEAD) return false;
    const { name, file } = partOf(end ? this.#text.slice(0, end.index) : this.#text, this.#add);
    this.#label = name.slice(0, 100);
    this.#reading = file ? 'file' : 'value';
    this.#text = end ? this.#text.slice(end.index + end[0].length) : '';
    return true;
  }

  #content(): boolean {
    const at = this.#text.indexOf(this.#delimiter);
    // What may be the beginning of a delimiter waits for its end.
    const upTo = at === -1 ? Math.max(0, this.#text.length - this.#delimiter.length - 2) : at;
    if (this.#reading === 'value') this.#value.push(this.#text.slice(0, upTo).replace(at === -1 ? /$^/ : /\r?\n$/, ''));
    this.#text = this.#text.slice(at === -1 ? upTo : at + this.#delimiter.length);
    if (at === -1) return false;
    this.#value.end();
    this.#reading = 'head';
    return true;
  }
}
