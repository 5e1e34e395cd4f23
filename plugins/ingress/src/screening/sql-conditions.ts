import { is, isValue, type Token } from './sql-tokens.ts';

/** `or 1=1` in all its forms: a logic word, and a comparison of what is known already. */
export function tautology(tokens: readonly Token[], quoted: boolean): string | undefined {
  for (const [index, token] of tokens.entries()) {
    // «The user's not known» begins no condition.
    if (token.kind !== 'l' || (token.text === 'not' && tokens[index - 1]?.kind === 'w')) continue;
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
    // «500 in the morning» compares nothing: behind a word of comparison a value stands, or a bracket.
    const compared = middle?.kind === '=' && right !== undefined && (/\W/.test(middle.text) || isValue(right) || right.kind !== 'w');
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
export function compared(tokens: readonly Token[]): string | undefined {
  const [left, middle, right] = tokens;
  if (left?.kind !== 's' || middle?.kind !== '=' || right?.kind !== 's') return undefined;
  return right.open || /^[{[]/.test(left.text) ? 'a comparison' : undefined;
}

/** A quote that closes the string, and the rest of the statement cut off by a comment or an end. */
export function ended(all: readonly Token[], tokens: readonly Token[], quoted: boolean): string | undefined {
  if (!quoted || all.length < 2) return undefined;
  const last = all.at(-1) as Token;
  const rest = tokens.slice(1);
  const short = rest.length <= 3;
  if (last.kind === 'c' && (short || rest[0]?.kind === ')' || rest[0]?.kind === ';' || rest[0]?.kind === 'l'))
    return 'the end of a statement and a comment';
  if (rest.length === 1 && rest[0]?.kind === ';') return 'the end of a statement';
  if (rest[0]?.kind === '=' && rest[0].text !== '?' && isValue(rest[1]) && rest.length <= 3) return 'a comparison';
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
export function clauses(tokens: readonly Token[], after: boolean): string | undefined {
  for (const [index, token] of tokens.entries()) {
    const [next, third] = [tokens[index + 1], tokens[index + 2]];
    if (is(token, 'case') && is(next, 'when') && tokens.some(each => is(each, 'then'))) return 'a case of a query';
    if (
      is(token, 'having') &&
      (next?.kind === 'n' ||
        (next?.kind === 'w' && third?.kind === '=' && tokens[index + 3] !== undefined) ||
        (after && next !== undefined && next.kind !== 'w'))
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
    // In programs, what is imported under a name comes from a string.
    const listed = is(token, 'as') && next?.kind === 'w' && is(third, 'from') && tokens[index + 3]?.kind !== 's';
    if (listed && (after || index <= 1)) return 'a list of a query';
    if (is(token, 'from') && next?.kind !== 's' && is(tokens[index - 2], 'as') && (tokens[index - 1]?.kind === 's' || after))
      return 'a list of a query';
    if (token.kind === 'v' && (token.text.startsWith('@@') || next?.text === ':=') && (token.text.length > 4 || next !== undefined))
      return 'a variable of the database';
  }
  return undefined;
}
