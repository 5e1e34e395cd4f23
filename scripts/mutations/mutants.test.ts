import { expect, test } from 'vitest';
import { applied, mutantsOf } from './mutants.ts';

const changed = (source: string) => mutantsOf(source).map(mutant => applied(source, mutant));

test.each<[string, string, string[]]>([
  ['a condition', 'if (a) b = 1;', ['if (!(a)) b = 1;', 'if (a) ;', 'if (a) b = 2;']],
  ['an operator, the one between and not one inside', 'x(a < b && f("<"))', [';', 'x(a < b || f("<"))', 'x(a <= b && f("<"))'].sort()],
  [
    'a refusal and a wait',
    'async function f() { await g(); throw e; }',
    ['async function f() { ; throw e; }', 'async function f() { g(); throw e; }', 'async function f() { await g(); ; }'],
  ],
  ['a not and a truth', 'const a = !b || true;', ['const a = !b && true;', 'const a = b || true;', 'const a = !b || false;'].sort()],
  ['an answer', 'function f() { return g; }', ['function f() { return undefined as never; }']],
  [
    'no type, no import, no log line',
    "import a from 'b'; interface X { a: 1 } type Y = 2; const z: 3 | true = a; this.#log.warn({}, 'x');",
    [],
  ],
])('mutants of %s', (_, source, expected) => {
  expect(changed(source).sort()).toEqual([...expected].sort());
});

test('a mutant knows its line', () => {
  expect(mutantsOf('a();\n\nb(7);').map(({ line, kind }) => `${line} ${kind}`)).toEqual([
    '1 dropped statement',
    '3 dropped statement',
    '3 other number',
  ]);
});
