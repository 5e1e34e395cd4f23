import { is, type Token } from './sql-tokens.ts';
import { STATEMENTS } from './sql-words.ts';

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
export function stacked(tokens: readonly Token[], quoted: boolean, value: string): string | undefined {
  for (const [index, token] of tokens.entries()) {
    const next = tokens[index + 1];
    if (token.kind === ';' && next && begun(tokens.slice(index + 1), quoted && tokens.slice(1, index).every(({ kind }) => kind !== 'w')))
      return 'a second statement';
    if (token.kind !== 'w' && token.kind !== 'f') continue;
    if (is(token, 'declare') && next?.kind === 'v') return 'a declaration';
    if (is(token, 'exec', 'execute') && (next?.kind === 'v' || next?.text === 'master' || /^(?:xp_|sp_|master\.)/.test(next?.text ?? '')))
      return 'a stored procedure';
    if (/^(?:xp_(?:cmdshell|dirtree|regread|fileexist|availablemedia)|master\.(?:dbo|sys|xp_))/.test(token.text))
      return 'a stored procedure';
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
