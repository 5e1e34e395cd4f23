import { expect, test } from 'vitest';
import { navGroups } from './nav-groups.ts';

const page = (name: string, order?: number, group?: string) => ({
  label: name,
  page: name,
  ...(order === undefined ? {} : { order }),
  ...(group === undefined ? {} : { group }),
});
const shape = (nav: ReturnType<typeof page>[]) =>
  navGroups({ label: 'Bank', nav }).map(({ title, entries }) => [title, ...entries.map(({ page: each }) => each)]);

test('pages without a group stand under their service, those of a group under its heading, all in their order', () => {
  expect(shape([page('late'), page('b', 2), page('a', 1)])).toEqual([['Bank', 'a', 'b', 'late']]);
  expect(shape([page('rates', 4, 'Money'), page('teller', 3, 'People'), page('loans', 1), page('fees', 2, 'Money')])).toEqual([
    ['Bank', 'loans'],
    ['Money', 'fees', 'rates'],
    ['People', 'teller'],
  ]);
  expect(shape([page('fees', 1, 'Money')])).toEqual([['Money', 'fees']]);
});
