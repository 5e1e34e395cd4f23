import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { useDictionaryMode } from '../src/dictionary-mode.ts';

setFlagsFromString('--allow-natives-syntax');
const hasClass = runInNewContext('object => %HasFastProperties(object)') as (object: object) => boolean;

test('an object keeps its members, and has no hidden class that a getter could belong to', () => {
  const context = Object.assign(Object.create({ inherited: true }) as object, { req: 1, res: 2 });
  expect(hasClass(context)).toBe(true);
  useDictionaryMode(context);
  expect(hasClass(context)).toBe(false);
  Object.defineProperty(context, 'oidc', { get: () => 3 });
  expect(hasClass(context)).toBe(false);
  expect({ ...context }).toMatchObject({ req: 1, res: 2 });
});
