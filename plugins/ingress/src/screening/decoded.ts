/** How deep an attacker's encodings are undone; a backend decodes once, a careless one twice (hardening H-26). */
const ROUNDS = 3;
const LONGEST = 8_192;
/** What tells at once that a value is nothing but words and numbers. */
const PLAIN = /^[\p{L}\p{N} _.,@:+-]*$/u;
const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  apos: "'",
  tab: '\t',
  newline: '\n',
  colon: ':',
  lpar: '(',
  rpar: ')',
  lbrace: '{',
  lcub: '{',
  rcub: '}',
  grave: '`',
  sol: '/',
  nbsp: ' ',
  equals: '=',
  semi: ';',
  comma: ',',
  period: '.',
  num: '#',
  excl: '!',
  lsqb: '[',
  rsqb: ']',
  bsol: '\\',
};

/** Whether a value can be passed over: words, numbers, addresses. */
export const isPlain = (value: string): boolean => PLAIN.test(value);

/**
 * The forms in which a backend may come to read a value: as it came, and with each layer of encoding undone. Percent (once and again),
 * `%u0027`, HTML entities, backslash escapes, full-width letters and bytes that a sloppy decoder takes for ASCII are all ways to write the
 * same thing. At most four forms of at most 8 KiB; what is longer is read at both ends.
 */
export function formsOf(value: string): string[] {
  const forms = new Set<string>();
  // Every backend decodes once: what stood encoded says nothing that it does not say decoded.
  let form = percent(bounded(value));
  forms.add(form);
  for (let round = 0; round < ROUNDS; round++) {
    const next = unescaped(entities(percent(form)));
    if (next === form) break;
    form = next;
    forms.add(form);
  }
  // An encoded form inside of a value keeps its plus signs.
  if (value.includes('%') && form.includes('+') && !value.includes(' ')) forms.add((form = form.replaceAll('+', ' ')));
  const folded = fold(form);
  if (folded !== form) forms.add(folded);
  return [...forms].slice(-4);
}

const bounded = (value: string): string =>
  value.length <= LONGEST ? value : `${value.slice(0, LONGEST / 2)} ${value.slice(-LONGEST / 2)}`;

/** `%41`, and `%u0041` as an old Microsoft server reads it. Sequences that are no UTF-8 become the bytes they are. */
function percent(text: string): string {
  if (!text.includes('%')) return text;
  return text
    .replaceAll(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, run => {
      // One byte by itself is the usual case, and needs no buffer.
      const byte = run.length === 3 ? Number.parseInt(run.slice(1), 16) : 0x80;
      if (byte < 0x80) return String.fromCharCode(byte);
      const bytes = Buffer.from(run.replaceAll('%', ''), 'hex');
      const decoded = bytes.toString('utf8');
      return decoded.includes('\ufffd') ? overlong(bytes) : decoded;
    });
}

/** Two bytes where one would do (`%c0%af` for `/`): refused by every sound decoder, taken by others. */
function overlong(bytes: Buffer): string {
  let text = '';
  for (let index = 0; index < bytes.length; index++) {
    const [byte = 0, next = 0] = [bytes[index], bytes[index + 1]];
    if ((byte === 0xc0 || byte === 0xc1) && (next & 0xc0) === 0x80) {
      text += String.fromCharCode(((byte & 0x1f) << 6) | (next & 0x3f));
      index++;
    } else text += String.fromCharCode(byte);
  }
  return text;
}

function entities(text: string): string {
  if (!text.includes('&')) return text;
  return text.replaceAll(
    /&(?:#x([0-9a-f]{1,6})|#0*([0-9]{1,7})|([a-z]{2,8}));?/gi,
    (whole, hex: string | undefined, decimal: string | undefined, name: string | undefined) => {
      if (name) return ENTITIES[name.toLowerCase()] ?? whole;
      const code = hex ? Number.parseInt(hex, 16) : Number(decimal);
      return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : '';
    },
  );
}

/** `\x27`, `\u0027`, `\u{27}` and `\047` of languages in which payloads are written. */
function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replaceAll(
    /\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|([0-7]{3}))/gi,
    (whole, ...groups: (string | undefined)[]) => {
      const [byte, unit, point, octal] = groups;
      const code = octal ? Number.parseInt(octal, 8) : Number.parseInt(byte ?? unit ?? point ?? '', 16);
      return Number.isNaN(code) || code > 0x10_ff_ff ? whole : String.fromCodePoint(code);
    },
  );
}

/** Full-width forms, and the letters of single-byte pages that browsers once took for angle brackets (`¼script¾`). */
const fold = (text: string): string => (OTHER_LETTERS.test(text) ? text.normalize('NFKC') : text).replaceAll('\0', '');
const OTHER_LETTERS = /[^\0-\x7f]/;
