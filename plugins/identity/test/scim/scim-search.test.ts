import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pageOf, readScimQuery } from '../../src/scim/scim-listing.ts';
import { Directory, ENTERPRISE, type ScimUser } from '../fixtures/directory.ts';
import { World } from '../fixtures/world.ts';

const PEOPLE = 100_000;
const SEARCH = 'urn:ietf:params:scim:api:messages:2.0:SearchRequest';
let world: World;
let directory: Directory;
const ids: Record<string, string> = {};

beforeAll(async () => {
  world = await World.start();
  const envId = await world.environment('auth.search.acme.localhost');
  directory = new Directory(world, { persona: as.machine('bff-delegator', 'scim:read', 'scim:write'), envId });
  const people: Record<string, unknown>[] = [
    {
      userName: 'bjensen',
      externalId: 'E-1',
      name: { familyName: "O'Malley", givenName: 'Barbara' },
      title: 'Guide',
      userType: 'Employee',
      emails: [
        { value: 'bjensen@example.com', type: 'work', primary: true },
        { value: 'babs@jensen.org', type: 'home' },
      ],
    },
    {
      userName: 'JSmith',
      externalId: 'e-1',
      name: { familyName: 'Smith' },
      userType: 'Intern',
      emails: [{ value: 'js@example.org', type: 'work' }],
      displayName: 'J. Smith',
    },
    {
      userName: 'zoe',
      active: false,
      nickName: 'Zed',
      roles: [{ value: 'reader' }],
      [ENTERPRISE]: { department: 'Tours', manager: { value: 'm-1' } },
    },
    { userName: `quote"and\\slash`, title: '%_' },
  ];
  for (const person of people) ids[person['userName'] as string] = (await directory.create(person)).id;
});
afterAll(() => world[Symbol.asyncDispose]());

describe('a filter', () => {
  test.each([
    ['userName eq "BJENSEN"', ['bjensen']],
    ['userName Eq "bjensen"', ['bjensen']],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "J"', ['JSmith']],
    ['name.familyName co "O\'Malley"', ['bjensen']],
    ['externalId eq "E-1"', ['bjensen']],
    ['externalId eq "e-1"', ['JSmith']],
    ['title pr', ['bjensen', 'quote"and\\slash']],
    ['not (title pr)', ['JSmith', 'zoe']],
    ['title pr and userType eq "Employee"', ['bjensen']],
    ['title pr or userType eq "Intern"', ['JSmith', 'bjensen', 'quote"and\\slash']],
    ['userType eq "Employee" and (emails co "example.com" or emails.value co "example.org")', ['bjensen']],
    ['userType ne "Employee" and not (emails co "example.com" or emails.value co "example.org")', ['quote"and\\slash', 'zoe']],
    ['userType eq "Employee" and (emails.type eq "work")', ['bjensen']],
    ['userType eq "Employee" and emails[type eq "work" and value co "@example.com"]', ['bjensen']],
    ['emails[type eq "home" and value co "@example.com"]', []],
    ['emails[type eq "work" and value co "@example.com"] or ims[type eq "xmpp" and value co "@foo.com"]', ['bjensen']],
    ['emails[not (type eq "work")]', ['bjensen']],
    ['emails.primary eq true', ['bjensen']],
    ['active eq false', ['zoe']],
    ['active ne false', ['JSmith', 'bjensen', 'quote"and\\slash']],
    [`${ENTERPRISE}:department eq "tours"`, ['zoe']],
    [`${ENTERPRISE}:manager.value eq "m-1"`, ['zoe']],
    [`${ENTERPRISE} pr`, ['zoe']],
    [`schemas eq "${ENTERPRISE}"`, ['zoe']],
    ['roles eq "reader"', ['zoe']],
    ['displayName ew "smith"', ['JSmith']],
    ['nickName gt "a" and nickName le "zed"', ['zoe']],
    ['nickName eq null', ['JSmith', 'bjensen', 'quote"and\\slash']],
    ['meta.created lt "2000-01-01T00:00:00Z"', []],
    ['meta.lastModified ge "2011-05-13T04:42:34Z" and userName eq "zoe"', ['zoe']],
    ['meta.resourceType eq "User" and meta.version eq "W/\\"1\\"" and userName eq "zoe"', ['zoe']],
    ['userName eq "quote\\"and\\\\slash"', ['quote"and\\slash']],
    ['title eq "%_"', ['quote"and\\slash']],
    ['title co "%"', ['quote"and\\slash']],
    ['userName eq "x\' or true --"', []],
    ['id eq "no-id"', []],
  ])('%s', async (filter, found) => {
    expect(await directory.found(filter)).toEqual(found);
  });

  test('by id and by group', async () => {
    const id = ids['zoe'] as string;
    expect(await directory.found(`id eq "${id}"`)).toEqual(['zoe']);
    expect(await directory.found(`groups.display eq "nobody:here"`)).toEqual([]);
  });

  test.each([
    ['userName', 'invalidFilter'],
    ['userName eq', 'invalidFilter'],
    ['userName eq "a" garbage', 'invalidFilter'],
    ['(userName eq "a"', 'invalidFilter'],
    ['unheard eq "a"', 'invalidFilter'],
    ['name eq "a"', 'invalidFilter'],
    ['addresses eq "a"', 'invalidFilter'],
    ['active eq "yes"', 'invalidFilter'],
    ['active gt true', 'invalidFilter'],
    ['userName eq 7', 'invalidFilter'],
    ['meta.created co "2011"', 'invalidFilter'],
    ['meta.created gt "soon"', 'invalidFilter'],
    ['name[familyName eq "a"]', 'invalidFilter'],
    ['emails[unheard eq "a"]', 'invalidFilter'],
    ['password eq "a"', 'sensitive'],
    [Array.from({ length: 51 }, () => 'title pr').join(' or '), 'invalidFilter'],
    [`userName eq "${'x'.repeat(4_000)}"`, 'invalidFilter'],
    ['userName eq "\\u0000"', 'invalidFilter'],
  ])('that means nothing is refused: %s', async (filter, scimType) => {
    const { status, json } = await directory.send('GET', `/Users?${new URLSearchParams({ filter })}`);
    expect([status, json['schemas'], json['status'], json['scimType']]).toEqual([
      400,
      ['urn:ietf:params:scim:api:messages:2.0:Error'],
      '400',
      scimType,
    ]);
  });
});

describe('a list', () => {
  const list = async (query: Record<string, string>) => {
    const { status, json } = await directory.send('GET', `/Users?${new URLSearchParams(query)}`);
    expect(status).toBe(200);
    return json as unknown as { totalResults: number; startIndex: number; itemsPerPage: number; Resources: ScimUser[] };
  };

  test('is read page by page, each person once', async () => {
    const [first, second, beyond, none] = await Promise.all([
      list({ startIndex: '1', count: '3' }),
      list({ startIndex: '4', count: '3' }),
      list({ startIndex: '9' }),
      list({ startIndex: '-5', count: '-1' }),
    ]);
    expect([
      first.totalResults,
      first.startIndex,
      first.itemsPerPage,
      second.itemsPerPage,
      beyond.itemsPerPage,
      none.itemsPerPage,
      none.totalResults,
      none.startIndex,
    ]).toEqual([4, 1, 3, 1, 0, 0, 4, 1]);
    expect(new Set([...first.Resources, ...second.Resources].map(({ id }) => id)).size).toBe(4);
  });

  test('is sorted, and says by what it can be', async () => {
    const sorted = await list({ sortBy: 'userName', sortOrder: 'descending' });
    expect(sorted.Resources.map(({ userName }) => userName)).toEqual(['zoe', 'quote"and\\slash', 'JSmith', 'bjensen']);
    expect((await list({ sortBy: 'meta.lastModified' })).Resources).toHaveLength(4);
    for (const query of ['sortBy=title', 'sortBy=userName&sortOrder=up', 'count=many', 'startIndex=1.5'])
      expect([query, (await directory.send('GET', `/Users?${query}`)).status]).toEqual([query, 400]);
  });

  test('tells the attributes that were asked for', async () => {
    const filter = 'userName eq "bjensen"';
    const [only] = (await list({ filter, attributes: 'userName,emails.value' })).Resources;
    expect(Object.keys(only ?? {}).sort()).toEqual(['emails', 'id', 'schemas', 'userName']);
    expect(only?.['emails']).toEqual([{ value: 'bjensen@example.com' }, { value: 'babs@jensen.org' }]);
    const [without] = (await list({ filter, excludedAttributes: 'emails,name.givenName,id,meta' })).Resources;
    expect([without?.id, without?.['emails'], without?.['name'], without?.meta]).toEqual([
      ids['bjensen'],
      undefined,
      { familyName: "O'Malley" },
      undefined,
    ]);
  });

  test('is asked for by POST too', async () => {
    const search = { schemas: [SEARCH], filter: 'displayName pr', attributes: ['displayName'], startIndex: 1, count: 10 };
    const { status, json } = await directory.send('POST', '/Users/.search', search);
    expect([status, json['totalResults'], (json['Resources'] as ScimUser[])[0]?.['displayName']]).toEqual([200, 1, 'J. Smith']);
    expect((await directory.send('POST', '/Users/.search', { filter: 'displayName pr' })).status).toBe(400);
    expect((await directory.send('GET', '/Users/.search')).status).toBe(405);
  });
});

test(`with ${PEOPLE.toLocaleString('en')} people in a realm finds by an index, whatever it is that names them`, async () => {
  await world.sql`
    insert into users (user_id, env_id, email, email_ci, user_name, external_id)
    select gen_random_uuid(), ${SYSTEM.envId}, 'many-' || n || '@example.org', 'many-' || n || '@example.org', 'Many-' || n, 'x-' || n
      from generate_series(1, ${PEOPLE}) n`;
  await world.sql`analyze users`;
  const plan = async (query: Record<string, string>) => {
    const rows = await world.sql<{ 'QUERY PLAN': string }[]>`explain ${pageOf(world.sql, SYSTEM.envId, readScimQuery(query))}`;
    return rows.map(row => row['QUERY PLAN']).join('\n');
  };
  for (const query of [
    { filter: 'userName eq "many-77777"' },
    { filter: 'externalId eq "x-77777"' },
    { filter: `id eq "${ids['zoe']}"` },
    { filter: 'userName eq "many-1" or externalId eq "x-2"' },
    {},
    { startIndex: '50000', count: '200' },
    ...['userName', 'externalId', 'meta.created', 'meta.lastModified', 'id'].flatMap(sortBy => [
      { sortBy },
      { sortBy, sortOrder: 'descending' },
    ]),
  ] as Record<string, string>[]) {
    const told = await plan(query);
    // One that was found needs no order; a list comes in the order of its index.
    expect([query, (query['filter'] ? /Seq Scan on users/ : /Seq Scan on users|Sort Key: u/).exec(told)?.[0]], told).toEqual([
      query,
      undefined,
    ]);
  }
}, 60_000);
