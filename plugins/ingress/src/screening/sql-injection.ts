import { CALLS, CATALOGS, STATEMENTS, TELLING_CALLS } from './sql-words.ts';
import { type Token, tokensOf } from './sql-tokens.ts';

/** Nothing of a statement can be written without one of these. */
const CANDIDATE =
  /['"`;()=<>|&#*@$\\{}]|--|::|\b(?:pg_|xp_|sqlite|e\+?\d{2,})|\d\.?e\.|union|select|\b(?:insert|update|delete|drop|waitfor|exec|declare|having|procedure|into|create|alter|truncate|begin|or|and|case|as|div|regexp)\b/i;
const NUMBERS = /^\s*(?:-?2147483648|4294967296|-?2147483649|2\.2250738585072011e-308|1e309|0000012345|-1e-?308|18446744073709551616)\s*$/i;

/** What in a value reads as a part of an SQL statement, in words for the page of findings; nothing in what people write. */
export function sqlInjection(value: string): string | undefined {
  if (NUMBERS.test(value)) return 'a number that crashes parsers';
  if (!CANDIDATE.test(value) && !CATALOGS.test(value)) return undefined;
  if (CATALOGS.test(value) && !/\s\w+\s\w+\s\w+\s\w+\s/.test(value.replace(CATALOGS, ''))) return 'the name of a catalog';
  const found = judge(tokensOf(value), false, value);
  if (found) return found;
  for (const quote of ["'", '"', '`']) {
    if (!value.includes(quote)) continue;
    const reason = judge(tokensOf(value, quote), true, value);
    if (reason) return `${reason}, behind a closed quote`;
  }
  return operators(value);
}

/** `quoted`: the value closed a string that the statement had opened, so what follows is read as code. */
function judge(all: readonly Token[], quoted: boolean, value: string): string | undefined {
  if (all.length === 0) return undefined;
  const tokens = all.filter(({ kind }) => kind !== 'c');
  const commented = all.length > tokens.length;
  return (
    union(tokens) ??
    query(tokens, quoted || commented) ??
    stacked(tokens, quoted, value) ??
    calls(tokens, quoted) ??
    tautology(tokens, quoted) ??
    compared(tokens) ??
    ended(all, tokens, quoted) ??
    clauses(tokens, quoted || commented)
  );
}

const is = (token: Token | undefined, ...words: string[]): boolean =>
  token !== undefined &&
  (token.kind === 'w' || token.kind === 'f' || token.kind === 'l' || token.kind === '=') &&
  words.includes(token.text);
const isValue = (token: Token | undefined): boolean =>
  token !== undefined &&
  (token.kind === 'n' || token.kind === 's' || token.kind === 'v' || token.kind === 'f' || is(token, 'null', 'true', 'false'));

function union(tokens: readonly Token[]): string | undefined {
  for (const [index, token] of tokens.entries()) {
    if (!is(token, 'union', 'intersect', 'except', 'minus')) continue;
    let next = index + 1;
    while (is(tokens[next], 'all', 'distinct', 'distinctrow') || tokens[next]?.kind === '(' || tokens[next]?.kind === 'o') next++;
    if (is(tokens[next], 'select', 'values')) return 'a union with another query';
  }
  return undefined;
}

/** `select` counts with something that only a query has: a list of values, a star, a call, a bracket before it, or its further clauses. */
function query(tokens: readonly Token[], after: boolean): string | undefined {
  for (const [index, token] of tokens.entries()) {
    if (!is(token, 'select')) continue;
    const [before, first, second] = [tokens[index - 1], tokens[index + 1], tokens[index + 2]];
    if (!first) continue;
    const opened =
      before?.kind === '(' || before?.kind === ';' || before?.kind === 'l' || before?.kind === '=' || after || token.kind === 'f';
    const starred =
      first.text === '*' ||
      isValue(first) ||
      first.kind === '(' ||
      is(first, 'distinct', 'top', 'case', 'if', 'pg_sleep', 'user', 'sleep', 'group_concat', 'concat', 'load_file', 'char');
    const from = tokens.slice(index, index + 40).findIndex(each => is(each, 'from'));
    const listed =
      from > 0 && tokens.slice(index, index + from).some(({ kind, text }) => kind === ',' || text.includes('_') || text.includes('.'));
    const filtered =
      from > 0 &&
      tokens.slice(index + from).some((each, at, rest) => is(each, 'where', 'limit', 'having', 'union', 'group') && rest.length > at + 1);
    if (opened && (starred || from > 0)) return 'a query inside of a value';
    if (starred && (from > 0 || first.kind === 'f' || second === undefined || second.kind === ',' || second.kind === '(')) return 'a query';
    if (from > 0 && listed && filtered) return 'a query';
    if (from > 0 && from <= 3 && filtered) return 'a query';
  }
  return undefined;
}

/** A map, since `constructor` is a word of every plain object. */
const TAIL: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    insert: ['into', 'ignore', 'low_priority'],
    replace: ['into'],
    delete: ['from'],
    drop: ['table', 'database', 'user', 'view', 'schema', 'index', 'function', 'procedure', 'trigger', 'column'],
    create: ['table', 'database', 'user', 'view', 'function', 'procedure', 'trigger', 'or', 'index', 'schema', 'temporary'],
    alter: ['table', 'database', 'user', 'role', 'session', 'function'],
    truncate: ['table'],
    waitfor: ['delay', 'time'],
    execute: ['immediate'],
    load: ['data', 'xml'],
    procedure: ['analyse'],
    into: ['outfile', 'dumpfile'],
    rename: ['table'],
    grant: ['all', 'select', 'dba'],
  }),
);

/** A second statement, or a statement with the words that always follow its first. */
function stacked(tokens: readonly Token[], quoted: boolean, value: string): string | undefined {
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1];
    if (token.kind === ';' && next && begun(tokens.slice(index + 1), quoted)) return 'a second statement';
    if (token.kind !== 'w' && token.kind !== 'f') continue;
    if (is(token, 'declare') && next?.kind === 'v') return 'a declaration';
    if (is(token, 'exec', 'execute') && (next?.kind === 'v' || next?.text === 'master' || /^(?:xp_|sp_|master\.)/.test(next?.text ?? '')))
      return 'a stored procedure';
    if (/^(?:xp_(?:cmdshell|dirtree|regread|fileexist|availablemedia)|master\.(?:dbo|\.)?)/.test(token.text)) return 'a stored procedure';
    if (!next || !TAIL.get(token.text)?.includes(next.text)) continue;
    const begins = tokens.slice(0, index).every(({ kind }) => kind === 'o');
    const structured =
      tokens.slice(index + 2).some(({ kind }) => STRUCTURE.test(kind)) || value.includes(`${token.text} ${next.text}`.toUpperCase());
    if (quoted || tokens[index - 1]?.kind === ';' || is(token, 'waitfor', 'into', 'procedure') || (begins && structured))
      return `a statement (${token.text} ${next.text})`;
  }
  return undefined;
}
const STRUCTURE = /^[(,;=sv]$/;

/** Whether the words behind a semicolon are a statement; a sentence may begin with the same one. */
function begun([first, second, ...rest]: readonly Token[], quoted: boolean): boolean {
  if (!first || !second || (first.kind !== 'w' && first.kind !== 'f') || !STATEMENTS.has(first.text)) return false;
  if (
    quoted ||
    first.kind === 'f' ||
    second.text === '[' ||
    second.kind === 'v' ||
    second.kind === 'f' ||
    second.kind === 's' ||
    second.text === '*' ||
    second.kind === 'n'
  )
    return true;
  if (TAIL.get(first.text)?.includes(second.text) || /^(?:xp_|sp_|master\.)/.test(second.text)) return true;
  return first.text === 'update' && rest.some(token => is(token, 'set'));
}

/** A call that only a database knows; one that others know too where it stands behind a quote, or is never closed. */
function calls(tokens: readonly Token[], quoted: boolean): string | undefined {
  const open: Token[] = [];
  for (const token of tokens) {
    if (token.kind === 'f') open.push(token);
    else if (token.kind === '(') open.push(token);
    else if (token.kind === ')') open.pop();
  }
  const unclosed = open.find(({ kind, text }) => kind === 'f' && CALLS.has(text));
  const words = tokens.filter(({ kind }) => kind === 'w').length;
  for (const [index, token] of tokens.entries()) {
    if (is(token, 'div') && tokens[index + 1]?.kind === '(' && tokens[index + 2]?.kind === 'n') return 'a call of div';
    if (token.kind !== 'f') continue;
    if (TELLING_CALLS.has(token.text)) return `a call of ${token.text}`;
    const [next, before] = [tokens[index + 1], tokens[index - 1]];
    if (is(token, 'sleep') && (next?.kind === 'n' || next?.kind === 's' || next?.kind === 'o' || next?.kind === 'f' || next?.kind === '('))
      return 'a call of sleep';
    if (
      is(token, 'user', 'version', 'database', 'now', 'schema') &&
      next?.kind === ')' &&
      (before === undefined || before.kind === 'l' || before.kind === ',' || before.kind === '(' || quoted) &&
      words < 2
    )
      return `a call of ${token.text}`;
    if (CALLS.has(token.text) && before !== undefined && (before.kind === 'l' || (quoted && (before.kind === 'o' || before.kind === '='))))
      return `a call of ${token.text}`;
  }
  const [last, before] = [tokens.at(-1), tokens.at(-3)];
  if (last?.kind === '(' && tokens.at(-2)?.text === '=' && before?.kind === 'w' && CALLS.has(before.text) && tokens.length === 3)
    return `the beginning of a call of ${before.text}`;
  return unclosed && words <= 2 ? `the beginning of a call of ${unclosed.text}` : undefined;
}

/** `or 1=1` in all its forms: a logic word, and a comparison of what is known already. */
function tautology(tokens: readonly Token[], quoted: boolean): string | undefined {
  for (const [index, token] of tokens.entries()) {
    if (token.kind !== 'l') continue;
    let at = index + 1;
    while (
      tokens[at]?.kind === '(' ||
      (tokens[at]?.kind === 'o' && tokens[at]?.text !== '.') ||
      is(tokens[at], 'not') ||
      tokens[at]?.text === '!'
    )
      at++;
    const [left, middle, right] = [tokens[at], tokens[at + 1], tokens[at + 2]];
    if (!left) continue;
    const compared = middle?.kind === '=' && right !== undefined;
    if (compared && isValue(left) && (isValue(right) || right.kind === 'w')) return 'a comparison that is always the same';
    if (compared && quoted && (isValue(right) || isValue(left))) return 'a comparison';
    if (
      compared &&
      (left.kind === 'w' || left.kind === 'f') &&
      isValue(right) &&
      /^(?:=|<|>|<>|!=|<=|>=)$/.test(middle.text) &&
      tokens[0] !== token &&
      tokens.length <= 12 &&
      index === 1 &&
      /^[ns]$/.test(tokens[0]?.kind ?? '')
    )
      return 'a comparison';
    if (quoted && index <= 2 && isValue(left) && (middle === undefined || middle.kind === 'l' || middle.kind === ')')) return 'a condition';
    if (quoted && index <= 1 && left.kind === 's') return 'a condition';
    if (is(token, '||') && (left.kind === 's' || left.kind === 'n') && quoted) return 'a join of strings';
    if (is(token, '||') && is(left, 'select')) return 'a query inside of a value';
    if (
      is(token, 'and', 'or', '&&', '||') &&
      index === 1 &&
      tokens[0]?.kind === 'n' &&
      (is(left, 'true', 'false', 'null') || (left.kind === '(' && tokens.length > 4))
    )
      return 'a condition';
    if (is(token, 'or', 'and') && left.kind === 's' && compared) return 'a comparison';
    if (token.text === 'or' && index === 1 && tokens[0]?.kind === 'n' && tokens[at - 1]?.kind === '(') return 'a condition';
  }
  return undefined;
}

/** Two strings and a comparison between them, the last of which the statement itself will close; or a document compared with a path. */
function compared(tokens: readonly Token[]): string | undefined {
  const [left, middle, right] = tokens;
  if (left?.kind !== 's' || middle?.kind !== '=' || right?.kind !== 's') return undefined;
  return right.open || /^[{[]/.test(left.text) ? 'a comparison' : undefined;
}

/** A quote that closes the string, and the rest of the statement cut off by a comment or an end. */
function ended(all: readonly Token[], tokens: readonly Token[], quoted: boolean): string | undefined {
  if (!quoted || all.length < 2) return undefined;
  const last = all.at(-1) as Token;
  const rest = tokens.slice(1);
  const short = rest.length <= 3;
  if (last.kind === 'c' && (short || rest[0]?.kind === ')' || rest[0]?.kind === ';' || rest[0]?.kind === 'l'))
    return 'the end of a statement and a comment';
  if (rest.length === 1 && rest[0]?.kind === ';') return 'the end of a statement';
  if (rest[0]?.kind === '=' && isValue(rest[1]) && rest.length <= 3) return 'a comparison';
  if (
    rest[0]?.kind === 'o' &&
    /^[+*/%^|&]$/.test(rest[0].text) &&
    (rest[1]?.kind === 'f' || rest[1]?.kind === '(') &&
    rest.at(-1)?.kind !== 'w'
  )
    return 'a sum with a string';
  if (rest[0]?.kind === 'l' && rest[1]?.kind === 'f') return 'a condition';
  if (
    (rest[0]?.text === '!' || rest[0]?.text === '!=') &&
    rest.length <= 2 &&
    rest.every(({ kind }) => kind === 'l' || kind === 's' || kind === '=')
  )
    return 'a comparison';
  if (rest[0]?.text === '!' && rest[1]?.open && rest.length === 2) return 'a comparison';
  if (is(rest[0], 'regexp', 'rlike') && rest.length === 1) return 'a comparison';
  if (rest[0]?.kind === 'f' && is(rest[0], 'sleep', 'waitfor', 'benchmark')) return 'a call';
  if (
    is(rest[0], 'having', 'limit', 'order', 'group', 'waitfor', 'procedure', 'rlike', 'select', 'into') &&
    rest.length >= 2 &&
    rest.length <= 12
  )
    return 'a clause';
  if (rest[0]?.text === '|' && rest.length <= 12 && rest.some(({ text }) => text === '%' || text === '|')) return 'a pipe behind a string';
  return undefined;
}

/** Clauses that stand by themselves. */
function clauses(tokens: readonly Token[], after: boolean): string | undefined {
  for (const [index, token] of tokens.entries()) {
    const [next, third] = [tokens[index + 1], tokens[index + 2]];
    if (is(token, 'case') && is(next, 'when') && tokens.some(each => is(each, 'then'))) return 'a case of a query';
    if (
      is(token, 'having') &&
      (next?.kind === 'n' ||
        (next?.kind === 'w' && third?.kind === '=' && tokens[index + 3] !== undefined) ||
        (after && next !== undefined))
    )
      return 'a having of a query';
    if (is(token, 'group', 'order') && is(next, 'by') && third !== undefined && (third.kind === 'n' || after)) return 'an order of a query';
    if (
      token.kind === ')' &&
      (next?.kind === '=' || is(next, 'like', 'having', 'between')) &&
      (third?.kind === '(' || third?.kind === 'f') &&
      is(next, 'like', 'having')
    )
      return 'a condition behind a bracket';
    if (is(token, 'like') && third === undefined && next?.kind === '(') return 'a condition behind a bracket';
    if (
      token.kind === 'f' &&
      is(token, 'if') &&
      ((tokens[index + 2]?.kind === '=' &&
        (tokens.length <= index + 3 || tokens.slice(index, index + 6).some(({ kind }) => kind === ','))) ||
        is(next, 'now'))
    )
      return 'a condition of a query';
    if (is(token, 'as') && next?.kind === 'w' && is(third, 'from') && (after || index <= 1)) return 'a list of a query';
    if (is(token, 'from') && tokens[index - 2] !== undefined && is(tokens[index - 2], 'as') && (tokens[index - 1]?.kind === 's' || after))
      return 'a list of a query';
    if (token.kind === 'v' && (token.text.startsWith('@@') || next?.text === ':=') && (token.text.length > 4 || next !== undefined))
      return 'a variable of the database';
  }
  return undefined;
}

/** Casts and operators of JSON, keys of document stores, and other notations that no sentence has. */
function operators(value: string): string | undefined {
  if (
    /::\s*(?:jsonb?|int(?:eger)?|bool(?:ean)?|text|varchar|bigint|double|numeric|regclass|date|char|bytea|float)\b/i.test(value) &&
    /[('"]/.test(value)
  )
    return 'a cast';
  if (/^\w+\s*::\s*(?:jsonb?|int(?:eger)?|bool(?:ean)?|bigint|numeric|regclass|varchar|bytea)$/i.test(value)) return 'a cast';
  if (/\bas\s*["'`]\s*from\b/i.test(value)) return 'a list of a query';
  if (/['"}\])]\s*(?:::\w+\s*)?(?:@>|<@|->>?|#>>?|#-|@@|@\?|\?[|&]?)\s*(?:'|array\s*\[|\$)/i.test(value) && /['"]/.test(value))
    return 'an operator of JSON';
  if (
    /(?:^|[[{,"'\s.])\$(?:ne|eq|gt|gte|lt|lte|nin?|in|not|nor|or|and|regex|where|exists|type|size|all|elemmatch|expr|mod|text|slice|jsonschema|comment|rand|natural|options|search)(?:["'\]\s:=}]|$)/i.test(
      value,
    )
  )
    return 'an operator of a document store';
  if (/union\s*(?:\/\*[^*]*\*\/)?select(?!ed|ing|ion|s\b)|\bunion(?:all)?select/i.test(value)) return 'a union with another query';
  if (/\b\d+(?:\.\d*)?e\.\w+|\b\d\.e\(/i.test(value)) return 'a number that hides a name';
  if (/\bselect\s+(?:pg_sleep|benchmark|sleep|load_file|user|group_concat|char|concat)\b/i.test(value)) return 'a query';
  if (/\bfrom\s+[`'"]?(?:information_schema|pg_catalog|mysql|sys)\b/i.test(value)) return 'the name of a catalog';
  return undefined;
}
