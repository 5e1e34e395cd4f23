import { describe, expect, test } from 'vitest';
import { readUser, type ScimDocument } from '../../src/scim/scim-document.ts';
import { ScimError } from '../../src/scim/scim-error.ts';
import { patched } from '../../src/scim/scim-patch.ts';
import { ENTERPRISE, USER } from '../../src/scim/scim-user-schema.ts';

const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const work = { value: 'work@example.org', type: 'work', primary: true };
const home = { value: 'home@example.org', type: 'home' };
const start = (): ScimDocument => ({
  userName: 'babs',
  name: { familyName: 'Jensen', givenName: 'Barbara' },
  emails: [work, home],
  [ENTERPRISE]: { department: 'Tours' },
});
const apply = (...operations: object[]) => patched(start(), { schemas: [PATCH], Operations: operations });
const refusal = (work: () => unknown): [number, string | undefined] => {
  try {
    work();
  } catch (error) {
    if (error instanceof ScimError) return [error.status, error.extra['scimType'] as string | undefined];
    throw error;
  }
  return [200, undefined];
};

/** RFC 7644, 3.5.2: each kind of operation, with and without a path, on one value, on parts, on several. */
describe('a patch', () => {
  test.each<[string, object, Partial<Record<string, unknown>>]>([
    ['adds an attribute', { op: 'add', path: 'nickName', value: 'Babs' }, { nickName: 'Babs' }],
    ['adds by name with the schema before it', { op: 'add', path: `${USER}:nickName`, value: 'Babs' }, { nickName: 'Babs' }],
    [
      'adds several without a path',
      { op: 'add', value: { nickName: 'Babs', NAME: { middleName: 'Jane' } } },
      { nickName: 'Babs', name: { familyName: 'Jensen', givenName: 'Barbara', middleName: 'Jane' } },
    ],
    [
      'adds a value to those that are there',
      { op: 'add', path: 'emails', value: [{ value: 'third@example.org' }] },
      { emails: [work, home, { value: 'third@example.org' }] },
    ],
    ['adds nothing twice', { op: 'add', path: 'emails', value: [home] }, { emails: [work, home] }],
    [
      'has one primary value',
      { op: 'add', path: 'emails', value: [{ value: 'new@example.org', primary: true }] },
      { emails: [{ ...work, primary: false }, home, { value: 'new@example.org', primary: true }] },
    ],
    [
      'makes the value that it adds a part to',
      { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '555' },
      { phoneNumbers: [{ type: 'mobile', value: '555' }] },
    ],
    ['replaces a part', { op: 'replace', path: 'name.givenName', value: 'Babs' }, { name: { familyName: 'Jensen', givenName: 'Babs' } }],
    ['replaces every value', { op: 'replace', path: 'emails', value: [home] }, { emails: [home] }],
    [
      'replaces the value that is meant',
      { op: 'replace', path: 'emails[type eq "work"]', value: { value: 'w2@example.org', type: 'work' } },
      { emails: [{ value: 'w2@example.org', type: 'work' }, home] },
    ],
    [
      'replaces a part of the value that is meant',
      { op: 'Replace', path: 'emails[type eq "WORK" and value ew ".org"].value', value: 'w2@example.org' },
      { emails: [{ ...work, value: 'w2@example.org' }, home] },
    ],
    [
      'replaces without a path, also by paths',
      { op: 'replace', value: { 'name.familyName': 'J.', active: 'False', id: 'x', unheard: 1 } },
      { name: { familyName: 'J.', givenName: 'Barbara' }, active: false },
    ],
    [
      'replaces without a path, also by paths with filters',
      { op: 'replace', value: { 'emails[type eq "home"].value': 'h2@example.org', meta: {} } },
      { emails: [work, { ...home, value: 'h2@example.org' }] },
    ],
    [
      'replaces what an extension knows',
      { op: 'replace', path: `${ENTERPRISE}:department`, value: 'Sales' },
      { [ENTERPRISE]: { department: 'Sales' } },
    ],
    [
      'adds to an extension as a whole',
      { op: 'add', value: { [ENTERPRISE]: { costCenter: '7', manager: { value: 'm' } } } },
      { [ENTERPRISE]: { department: 'Tours', costCenter: '7', manager: { value: 'm' } } },
    ],
    ['removes an attribute', { op: 'remove', path: 'name' }, { name: undefined }],
    ['removes a part', { op: 'remove', path: 'name.givenName' }, { name: { familyName: 'Jensen' } }],
    ['removes the value that is meant', { op: 'remove', path: 'emails[type eq "work"]' }, { emails: [home] }],
    ['removes the value that is shown', { op: 'remove', path: 'emails', value: [home] }, { emails: [work] }],
    [
      'removes a part of each value',
      { op: 'remove', path: 'emails.type' },
      { emails: [{ value: 'work@example.org', primary: true }, { value: 'home@example.org' }] },
    ],
    ['removes all that an extension knows', { op: 'remove', path: ENTERPRISE }, { [ENTERPRISE]: undefined }],
    ['removes by null', { op: 'replace', path: 'name', value: null }, { name: undefined }],
  ])('%s', (_, operation, changes) => {
    const expected = { ...start(), ...changes };
    for (const name of Object.keys(expected)) if (expected[name] === undefined) delete expected[name];
    expect(apply(operation)).toEqual(expected);
  });

  test.each<[string, object, string]>([
    ['names nothing', { op: 'add', path: 'unheard', value: 1 }, 'invalidPath'],
    ['names a part of nothing', { op: 'add', path: 'name.unheard', value: 'x' }, 'invalidPath'],
    ['is no path', { op: 'add', path: 'emails[', value: 'x' }, 'invalidPath'],
    ['filters what has one value', { op: 'replace', path: 'name[familyName eq "x"].givenName', value: 'x' }, 'invalidPath'],
    ['has a filter that cannot be read', { op: 'replace', path: 'emails[type eq]', value: {} }, 'invalidFilter'],
    ['changes the id', { op: 'replace', path: 'id', value: 'x' }, 'mutability'],
    ['changes the groups', { op: 'add', path: 'groups', value: [{ value: 'x' }] }, 'mutability'],
    ['replaces a value that is not there', { op: 'replace', path: 'emails[type eq "other"].value', value: 'x' }, 'noTarget'],
    ['removes from nowhere', { op: 'remove' }, 'noTarget'],
    ['has a value of another type', { op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue'],
    ['has no value', { op: 'add', path: 'title' }, 'invalidValue'],
    ['has no verb', { op: 'move', path: 'title', value: 'x' }, 'invalidSyntax'],
  ])('that %s is refused, and what came before it is not done', (_, operation, scimType) => {
    expect(refusal(() => apply({ op: 'add', path: 'title', value: 'x' }, operation))).toEqual([400, scimType]);
  });

  test('is a message with operations, not too many', () => {
    for (const message of [
      null,
      [],
      {},
      { schemas: [PATCH] },
      { schemas: [PATCH], Operations: [] },
      { Operations: [{ op: 'remove', path: 'title' }] },
    ])
      expect(refusal(() => patched(start(), message))).toEqual([400, 'invalidSyntax']);
    expect(refusal(() => apply(...Array.from({ length: 101 }, () => ({ op: 'remove', path: 'title' }))))).toEqual([400, 'invalidSyntax']);
  });
});

describe('a user that is sent', () => {
  const read = (user: Record<string, unknown>) => readUser({ schemas: [USER], userName: 'babs', ...user });
  test('is read without regard to case of its names, and without what nobody may write', () => {
    expect(
      read({
        USERNAME: 'babs',
        Name: { FAMILYNAME: 'Jensen' },
        id: 'x',
        meta: {},
        groups: [{ value: 'x' }],
        emails: [],
        title: null,
        unheard: {},
      }),
    ).toEqual({
      userName: 'babs',
      name: { familyName: 'Jensen' },
    });
  });
  test.each<[string, unknown, string]>([
    ['no object', [], 'invalidSyntax'],
    ['no schema', { userName: 'babs' }, 'invalidSyntax'],
    ['no name', { schemas: [USER] }, 'invalidValue'],
    ['an empty name', { schemas: [USER], userName: ' ' }, 'invalidValue'],
    ['a number for a text', { schemas: [USER], userName: 7 }, 'invalidValue'],
    ['a text for an object', { schemas: [USER], userName: 'babs', name: 'Jensen' }, 'invalidValue'],
    ['two primary values', { schemas: [USER], userName: 'babs', emails: [work, { ...home, primary: true }] }, 'invalidValue'],
    ['a text without end', { schemas: [USER], userName: 'x'.repeat(5_000) }, 'invalidValue'],
    ['a zero byte', { schemas: [USER], userName: 'a\0b' }, 'invalidValue'],
    [
      'too many values',
      { schemas: [USER], userName: 'babs', roles: Array.from({ length: 201 }, (_, index) => ({ value: `${index}` })) },
      'invalidValue',
    ],
  ])('with %s is refused', (_, user, scimType) => {
    expect(refusal(() => readUser(user))).toEqual([400, scimType]);
  });
});
