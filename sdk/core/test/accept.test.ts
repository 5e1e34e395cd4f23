import { expect, test } from 'vitest';
import { admits } from '../src/accept.ts';

test.each([
  [undefined, 'application/json', true],
  ['', 'application/json', true],
  ['*/*', 'application/json', true],
  ['text/html, application/xhtml+xml, */*;q=0.8', 'application/json; charset=utf-8', true],
  ['Application/JSON', 'application/json; charset=utf-8', true],
  ['application/*', 'application/json', true],
  ['text/html', 'application/json', false],
  ['text/*, image/png', 'application/json', false],
  ['*/*, application/json;q=0', 'application/json', false],
  ['application/json;q=0.000, application/*', 'application/json', false],
  ['application/json;q=0.1, */*;q=0', 'application/json', true],
  ['application/json;v=2;q=0.5', 'application/json', true],
  ['nonsense', 'application/json', false],
])('RFC 9110 Accept %j with %s: %s', (accept, type, admitted) => {
  expect(admits(accept, type)).toBe(admitted);
});
