import { expect, test } from 'vitest';
import type { Field } from '../../api/page-def.ts';
import { Problem } from '../../api/gateway/problem.ts';
import { draftOf, faultsOf, valuesOf } from './form-values.ts';

const fields: Field[] = [
  { name: 'name', label: 'Name', type: 'text', required: true, max: 5 },
  { name: 'n', label: 'N', type: 'number', min: 1, max: 9 },
  { name: 'on', label: 'On', type: 'bool' },
  { name: 'why', label: 'Why', type: 'text', required: true, when: { path: 'on', op: 'eq', value: true } },
  { name: 'doc', label: 'Doc', type: 'json' },
  { name: 'limits.cpu', label: 'Cpu', type: 'number' },
  { name: 'key', label: 'Key', type: 'secret_ref' },
  { name: 'id', label: 'Id', type: 'text', read_only: true },
];

test('a draft becomes typed values; hidden, read-only and empty fields stay away', () => {
  const draft = { ...draftOf(fields, { name: 'ab', limits: { cpu: 2 }, id: 'x' }), n: '3', doc: '{"a":[1]}' };
  expect(valuesOf(fields, draft)).toEqual({ values: { name: 'ab', n: 3, on: false, doc: { a: [1] }, limits: { cpu: 2 } }, faults: {} });
});

test('what stands in the way is said per field', () => {
  const { faults } = valuesOf(fields, { ...draftOf(fields), name: 'toolong', n: '12', on: true, doc: '{', key: 'hunter2' });
  expect(Object.keys(faults)).toEqual(['name', 'n', 'why', 'doc', 'key']);
});

test('findings of the service return to the fields they name', () => {
  const problem = new Problem({
    status: 422,
    code: 'x',
    title: 'x',
    correlationId: '',
    errors: [
      { pointer: '/name', code: 'a', message: 'no' },
      { pointer: '#/limits/cpu', code: 'a', message: 'too much' },
      { pointer: '/other', code: 'a', message: 'what' },
    ],
  });
  expect(faultsOf(problem, fields)).toEqual({ faults: { name: 'no', 'limits.cpu': 'too much' }, rest: ['other: what'] });
});
