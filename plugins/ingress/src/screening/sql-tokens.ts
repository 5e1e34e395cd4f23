/**
 * What a piece of a value is to a database: number, string, word, function (a word and its bracket), logic (and, or, ||), comparison,
 * other operator, comment, variable, end of a statement, brackets and comma.
 */
export type Kind = 'n' | 's' | 'w' | 'f' | 'l' | '=' | 'o' | 'c' | 'v' | ';' | '(' | ')' | ',';
export interface Token {
  readonly kind: Kind;
  /** In lower case; of a string its inside. */
  readonly text: string;
  /** A string that ends with the value, not with its quote. */
  readonly open?: boolean;
}

const MOST = 160;
const LOGIC = new Set(['and', 'or', 'xor', 'not', 'div', 'having', '||', '&&', '!']);
const COMPARE = new Set([
  '=',
  '<',
  '>',
  '<=',
  '>=',
  '<>',
  '!=',
  '<=>',
  '==',
  'like',
  'rlike',
  'regexp',
  'ilike',
  'glob',
  'between',
  'in',
  'is',
  '@>',
  '<@',
  '->',
  '->>',
  '#>',
  '#>>',
  '#-',
  '?',
  '?|',
  '?&',
  '@@',
  '@?',
  '~',
  '!~',
  '~*',
  '^=',
]);
const OPERATOR = /^(?:<=>|->>|#>>|<@|@>|@@|@\?|#>|#-|\?\||\?&|->|!~|~\*|<=|>=|<>|!=|==|\^=|\|\||&&|::|:=|[=<>+\-*/%&|^~!?:.])/;

/** Whether a piece is one of these words or signs. */
export const is = (token: Token | undefined, ...words: string[]): boolean =>
  token !== undefined &&
  (token.kind === 'w' || token.kind === 'f' || token.kind === 'l' || token.kind === '=') &&
  words.includes(token.text);
/** Whether a piece stands for a value. */
export const isValue = (token: Token | undefined): boolean =>
  token !== undefined &&
  (token.kind === 'n' || token.kind === 's' || token.kind === 'v' || token.kind === 'f' || is(token, 'null', 'true', 'false'));

/**
 * Reads a value as one of the databases would, from outside of strings, or from inside of one that `quote` opened. Linear in its length.
 */
export function tokensOf(value: string, quote = ''): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  if (quote) {
    const end = endOfString(value, 0, quote);
    if (end === -1) return [];
    tokens.push({ kind: 's', text: '' });
    at = end + 1;
  }
  while (at < value.length && tokens.length < MOST) {
    const [token, next] = read(value, at);
    if (token) tokens.push(token);
    at = next;
  }
  return tokens;
}

const SPACE = /[\s\0]/;
const DIGIT = /[0-9]/;
const LETTER = /[\p{L}_$]/u;
const BRACKETS: Readonly<Record<string, Kind>> = { '(': '(', ')': ')', ',': ',', ';': ';', '{': '(', '}': ')', '[': '(', ']': ')' };

function read(value: string, at: number): [Token | undefined, number] {
  const char = value[at] as string;
  if (char === ' ' || SPACE.test(char)) return [undefined, at + 1];
  if ((char >= 'a' && char <= 'z') || LETTER.test(char)) return word(value, at);
  if (DIGIT.test(char) || (char === '.' && DIGIT.test(value[at + 1] ?? ''))) return number(value, at);
  if (char === "'" || char === '"' || char === '`') return string(value, at, char);
  const bracket = BRACKETS[char];
  if (bracket) return [{ kind: bracket, text: char }, at + 1];
  if (char === '@') return variable(value, at);
  if (char === '/' && value[at + 1] === '*') return comment(value, at);
  const operator = OPERATOR.exec(value.slice(at, at + 3))?.[0];
  if (char === '#' ? !operator : char === '-' && value[at + 1] === '-') {
    const end = value.indexOf('\n', at);
    return [{ kind: 'c', text: char === '#' ? '#' : '--' }, end === -1 ? value.length : end + 1];
  }
  if (!operator) return [undefined, at + 1];
  return [{ kind: LOGIC.has(operator) ? 'l' : COMPARE.has(operator) ? '=' : 'o', text: operator }, at + operator.length];
}

function string(value: string, at: number, quote: string): [Token, number] {
  const end = endOfString(value, at + 1, quote);
  const inside = value.slice(at + 1, end === -1 ? undefined : end);
  return [
    { kind: quote === '`' ? 'w' : 's', text: inside.toLowerCase(), ...(end === -1 ? { open: true } : {}) },
    end === -1 ? value.length : end + 1,
  ];
}

/** A quote that is doubled or behind a backslash belongs to the string. */
function endOfString(value: string, from: number, quote: string): number {
  for (let at = from; at < value.length; at++) {
    if (value[at] === '\\') at++;
    else if (value[at] === quote) {
      if (value[at + 1] !== quote) return at;
      at++;
    }
  }
  return -1;
}

/** MySQL runs what stands in `/*!50000 … * /`: only the marks around it are a comment. */
function comment(value: string, at: number): [Token | undefined, number] {
  const special = /^\/\*!\d{0,6}/.exec(value.slice(at, at + 10))?.[0];
  if (special) return [{ kind: 'c', text: '/*!' }, at + special.length];
  const end = value.indexOf('*/', at + 2);
  // Names of files: `src/*.ts`, `'*'`.
  if (end === -1 && /[.{)'"`]/.test(value[at + 2] ?? '')) return [{ kind: 'o', text: '/' }, at + 2];
  return [{ kind: 'c', text: '/*' }, end === -1 ? value.length : end + 2];
}

function variable(value: string, at: number): [Token, number] {
  const operator = /^(?:@>|@@(?![\w])|@\?)/.exec(value.slice(at, at + 3))?.[0];
  if (operator) return [{ kind: '=', text: operator }, at + operator.length];
  const name = /^@{1,2}[\w.$`']*/.exec(value.slice(at, at + 64))?.[0] as string;
  return [{ kind: 'v', text: name.toLowerCase() }, at + name.length];
}

function number(value: string, at: number): [Token, number] {
  const text = /^(?:0x[0-9a-f]+|0b[01]+|[0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?\.?)/i.exec(value.slice(at, at + 64))?.[0] ?? (value[at] as string);
  return [{ kind: 'n', text: text.toLowerCase() }, at + text.length];
}

const WORD = /[\p{L}\p{N}_$]+(?:\.[\p{L}_$][\p{L}\p{N}_$]*)*/uy;
const OPENED = /(?:[\s\\]|\/\*[^*]{0,32}\*\/){0,40}\(/y;

function word(value: string, at: number): [Token, number] {
  WORD.lastIndex = at;
  const text = (WORD.exec(value)?.[0] ?? (value[at] as string)).toLowerCase();
  const next = at + text.length;
  if (LOGIC.has(text)) return [{ kind: 'l', text }, next];
  if (COMPARE.has(text)) return [{ kind: '=', text }, next];
  OPENED.lastIndex = next;
  const bracket = OPENED.exec(value)?.[0];
  if (bracket) return [{ kind: 'f', text }, next + bracket.length];
  return [{ kind: 'w', text }, next];
}
