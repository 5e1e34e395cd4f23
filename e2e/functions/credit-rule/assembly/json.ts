/** A JSON value. What is not there reads as null, 0 and ''. */
export class Json {
  static readonly NULL: Json = new Json();
  number: f64 = 0;
  text: string = '';
  truth: bool = false;
  readonly items: Array<Json> = [];
  readonly fields: Map<string, Json> = new Map();

  static parse(text: string): Json {
    const reader = new Reader(text);
    const value = reader.value();
    reader.space();
    if (reader.at != text.length) abort('JSON goes on after its end');
    return value;
  }

  get(name: string): Json {
    return this.fields.has(name) ? this.fields.get(name) : Json.NULL;
  }

  /** A string as JSON writes it. */
  static quote(text: string): string {
    let quoted = '"';
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code == 34 || code == 92) quoted += '\\' + text.charAt(at);
      else if (code < 32) quoted += '\\u00' + (code < 16 ? '0' : '1') + '0123456789abcdef'.charAt(code & 15);
      else quoted += text.charAt(at);
    }
    return quoted + '"';
  }
}

class Reader {
  at: i32 = 0;

  constructor(private readonly text: string) {}

  space(): void {
    while (this.at < this.text.length && this.text.charCodeAt(this.at) <= 32) this.at++;
  }

  private next(): i32 {
    this.space();
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : 0;
  }

  /** Whether the next character is this one, which is then passed. */
  private passes(code: i32): bool {
    if (this.next() != code) return false;
    this.at++;
    return true;
  }

  value(): Json {
    const value = new Json();
    const code = this.next();
    if (this.passes(123)) {
      while (!this.passes(125)) {
        if (value.fields.size > 0 && !this.passes(44)) abort('a comma is missing');
        this.next();
        const name = this.string();
        if (!this.passes(58)) abort('a colon is missing');
        value.fields.set(name, this.value());
      }
    } else if (this.passes(91)) {
      while (!this.passes(93)) {
        if (value.items.length > 0 && !this.passes(44)) abort('a comma is missing');
        value.items.push(this.value());
      }
    } else if (code == 34) value.text = this.string();
    else if (this.word('true')) value.truth = true;
    else if (!this.word('false') && !this.word('null')) value.number = this.digits();
    return value;
  }

  private word(word: string): bool {
    if (this.text.substr(this.at, word.length) != word) return false;
    this.at += word.length;
    return true;
  }

  private digits(): f64 {
    const from = this.at;
    while (this.at < this.text.length && '+-.0123456789eE'.includes(this.text.charAt(this.at))) this.at++;
    if (this.at == from) abort('this is no JSON');
    return parseFloat(this.text.substring(from, this.at));
  }

  private string(): string {
    if (this.text.charCodeAt(this.at++) != 34) abort('a name is missing');
    let read = '';
    for (let from = this.at; this.at < this.text.length; ) {
      const code = this.text.charCodeAt(this.at++);
      if (code == 34) return read + this.text.substring(from, this.at - 1);
      if (code != 92) continue;
      read += this.text.substring(from, this.at - 1) + this.escaped();
      from = this.at;
    }
    abort('a string has no end');
    return read;
  }

  private escaped(): string {
    const letter = this.text.charAt(this.at++);
    if (letter == 'u') {
      this.at += 4;
      return String.fromCharCode(<i32>parseInt(this.text.substr(this.at - 4, 4), 16));
    }
    const place = 'bfnrt'.indexOf(letter);
    return place < 0 ? letter : '\b\f\n\r\t'.charAt(place);
  }
}
