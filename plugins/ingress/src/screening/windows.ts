/** How much of a value is judged at once, and how much of it the next look sees again: no attack hides behind words, nor at a seam. */
const [WINDOW, OVERLAP] = [2_048, 512];

/** A value that comes in parts; each look at it is handed on, and no more of it than one is kept. */
export class Windows {
  readonly #look: (text: string) => void;
  #text = '';
  #looked = false;

  constructor(look: (text: string) => void) {
    this.#look = look;
  }

  push(part: string): void {
    this.#text += part;
    let from = 0;
    for (; this.#text.length - from > WINDOW; from += WINDOW - OVERLAP) this.#look(this.#text.slice(from, from + WINDOW));
    if (from === 0) return;
    this.#text = this.#text.slice(from);
    this.#looked = true;
  }

  /** Looks at what came so far of a value that goes on. */
  look(): void {
    if (this.#text.length > (this.#looked ? OVERLAP : 0)) this.#look(this.#text);
  }

  /** The value is over: looks at what is left of it, and begins anew. */
  end(): void {
    this.look();
    this.#text = '';
    this.#looked = false;
  }
}

/** The looks at a value that is there whole. */
export function windowsOf(value: string): string[] {
  if (value.length <= WINDOW) return [value];
  const looks: string[] = [];
  const windows = new Windows(look => looks.push(look));
  windows.push(value);
  windows.end();
  return looks;
}
