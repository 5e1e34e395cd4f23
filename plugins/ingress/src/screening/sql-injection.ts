import { clauses, compared, ended, tautology } from './sql-conditions.ts';
import { stacked } from './sql-statements.ts';
import { is, isValue, type Token, tokensOf } from './sql-tokens.ts';
import { CALLS, CATALOGS, TELLING_CALLS } from './sql-words.ts';

/** Nothing of a statement can be written without one of these. */
const CANDIDATE =
  /['"`;()=<>|&#*@$\\{}]|--|::|\b(?:pg_|xp_|sqlite|e\+?\d{2,})|\d\.?e\.|union|select|\b(?:insert|update|delete|drop|waitfor|exec|declare|having|procedure|into|create|alter|truncate|begin|or|and|case|as|div|regexp)\b/i;
const NUMBERS = /^\s*(?:-?2147483648|4294967296|-?2147483649|2\.2250738585072011e-308|1e309|0000012345|-1e-?308|18446744073709551616)\s*$/i;

/** Code between backticks, as people write it into text: it opens and closes no name of a database. */
const CODE_SPAN = /`{3,}|(?<![\w`])`[^\s`](?:[^`\n]*[^\s`])?`(?![\w`])/g;

/** What in a value reads as a part of an SQL statement, in words for the page of findings; nothing in what people write. */
export function sqlInjection(value: string): string | undefined {
  if (NUMBERS.test(value)) return 'a number that crashes parsers';
  if (!CANDIDATE.test(value) && !CATALOGS.test(value)) return undefined;
  if (CATALOGS.test(value) && !/\s\w+\s\w+\s\w+\s\w+\s/.test(value.replace(CATALOGS, ''))) return 'the name of a catalog';
  const found = judge(tokensOf(value), false, value);
  if (found) return found;
  for (const quote of ["'", '"', '`']) {
    const read = quote === '`' ? value.replaceAll(CODE_SPAN, 'code') : value;
    if (!read.includes(quote)) continue;
    const reason = judge(tokensOf(read, quote), true, read);
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
    if (
      CALLS.has(token.text) &&
      before !== undefined &&
      (before.kind === 'l' || (quoted && ((before.kind === 'o' && before.text !== '.') || before.kind === '=')))
    )
      return `a call of ${token.text}`;
  }
  const [last, before] = [tokens.at(-1), tokens.at(-3)];
  if (last?.kind === '(' && tokens.at(-2)?.text === '=' && before?.kind === 'w' && CALLS.has(before.text) && tokens.length === 3)
    return `the beginning of a call of ${before.text}`;
  return unclosed && words <= 2 ? `the beginning of a call of ${unclosed.text}` : undefined;
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
  if (
    /['"}\])]\s*(?:::\w+\s*)?(?:@>|<@|->>?|#>>?|#-|@@|@\?|\?[|&]|(?<=['"])\s*\?)\s*(?:'|array\s*\[|\$)/i.test(value) &&
    /['"]/.test(value)
  )
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
