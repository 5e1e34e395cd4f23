import { expect, test } from 'vitest';
import { actionBody, fillBody, fillPath, fillText } from './template.ts';

const scope = { row: { id: 'a/b?c', n: 3, deep: { ok: true } }, form: { reason: 'late' }, params: { type: 't' } };

test('a path takes encoded values, so data cannot choose another resource', () => {
  expect(fillPath('rows/{row.id}/undo/{type}', scope)).toBe('rows/a%2Fb%3Fc/undo/t');
  expect(fillPath('rows/{row.missing}', scope)).toBe('rows/');
});

test('a body keeps the type of a value that stands alone', () => {
  expect(
    fillBody({ n: '{row.n}', ok: '{row.deep.ok}', text: 'n={row.n}', gone: '{row.no}', list: ['{form.reason}'], one: 1 }, scope),
  ).toEqual({ n: 3, ok: true, text: 'n=3', list: ['late'], one: 1 });
  expect(fillText('{type}!', scope)).toBe('t!');
});

test('an action without a word about the form sends the form under its literals', () => {
  expect(actionBody({ kind: 'x' }, scope)).toEqual({ reason: 'late', kind: 'x' });
  expect(actionBody({ why: '{form.reason}' }, scope)).toEqual({ why: 'late' });
  expect(actionBody(undefined, { row: {} })).toEqual({});
});
