import { readFileSync, statSync } from 'node:fs';

/** The content of an environment file as variables (SUP-058). One that others can read is no place for secrets. */
export function readEnvironmentFile(path: string): Record<string, string> {
  return path === '' ? {} : variablesOf(contentOf(path));
}

/** Its text, to be handed on. Its content is in no error (SUP-059). */
export function contentOf(path: string): string {
  if (path === '') return '';
  const { mode } = statSync(path);
  if ((mode & 0o077) !== 0) throw new Error(`${path} can be read by others; give it mode 0600`);
  return readFileSync(path, 'utf8');
}

/** Lines `NAME=value`; empty ones and those that begin with # say nothing. */
export function variablesOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split('\n').flatMap(line => {
      const [, name, value = ''] = /^\s*([A-Z][A-Z0-9_]*)=(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value.trim().replace(/^(["'])(.*)\1$/, '$2')]];
    }),
  );
}
