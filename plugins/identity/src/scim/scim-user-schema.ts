import { binary, complex, flag, link, moment, named, type ScimAttribute, text } from './scim-attribute.ts';

export const USER = 'urn:ietf:params:scim:schemas:core:2.0:User';
export const ENTERPRISE = 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User';

/** Several values of one kind. `type` is a suggestion: clients have words of their own, and none of them is lost. */
const plural = (name: string, description: string, value: ScimAttribute, types: readonly string[]): ScimAttribute =>
  complex(
    name,
    description,
    [
      value,
      text('display', 'The value as people read it'),
      text('type', 'What the value is for', types.length > 0 ? { canonicalValues: types } : {}),
      flag('primary', 'Whether it is the preferred one; of all values at most one is'),
    ],
    { multiValued: true },
  );

/** The core attributes of a user (RFC 7643, 4.1). */
export const userAttributes: readonly ScimAttribute[] = [
  text('userName', 'What the person is called here; no two people of an environment have the same', {
    required: true,
    uniqueness: 'server',
  }),
  complex('name', 'The name in its parts', [
    text('formatted', 'The whole name'),
    text('familyName', 'The family name'),
    text('givenName', 'The given name'),
    text('middleName', 'Names between the two'),
    text('honorificPrefix', 'What stands before the name'),
    text('honorificSuffix', 'What stands behind the name'),
  ]),
  text('displayName', 'The name that others see'),
  text('nickName', 'The name among friends'),
  link('profileUrl', 'A page about the person', ['external']),
  text('title', 'The position in the organization'),
  text('userType', 'The relation to the organization'),
  text('preferredLanguage', 'The language the person prefers'),
  text('locale', 'Where numbers and dates are written as the person expects'),
  text('timezone', 'The IANA time zone'),
  flag('active', 'Whether the person may sign in'),
  text('password', 'A password to set; it is never told', { mutability: 'writeOnly', returned: 'never', caseExact: true }),
  plural('emails', 'E-mail addresses; the primary one, or the first, is what the person signs in with', text('value', 'The address'), [
    'work',
    'home',
    'other',
  ]),
  plural('phoneNumbers', 'Telephone numbers', text('value', 'The number'), ['work', 'home', 'mobile', 'fax', 'pager', 'other']),
  plural('ims', 'Addresses for instant messages', text('value', 'The address'), [
    'aim',
    'gtalk',
    'icq',
    'xmpp',
    'msn',
    'skype',
    'qq',
    'yahoo',
  ]),
  plural('photos', 'Pictures', link('value', 'Where the picture is', ['external']), ['photo', 'thumbnail']),
  complex(
    'addresses',
    'Postal addresses',
    [
      text('formatted', 'The whole address'),
      text('streetAddress', 'Street and number'),
      text('locality', 'The town'),
      text('region', 'The region'),
      text('postalCode', 'The postal code'),
      text('country', 'The country (ISO 3166-1)'),
      text('type', 'What the address is for', { canonicalValues: ['work', 'home', 'other'] }),
      flag('primary', 'Whether it is the preferred one; of all values at most one is'),
    ],
    { multiValued: true },
  ),
  complex(
    'groups',
    'Groups the person is a member of; changed through the groups',
    [
      text('value', 'The id of the group', { mutability: 'readOnly', caseExact: true }),
      text('display', 'The name of the group', { mutability: 'readOnly' }),
      text('type', 'How the person is a member', { mutability: 'readOnly', canonicalValues: ['direct'] }),
    ],
    { multiValued: true, mutability: 'readOnly' },
  ),
  plural('entitlements', 'What the person is entitled to', text('value', 'The entitlement'), []),
  plural('roles', 'What the person is in the organization; grants nothing here', text('value', 'The role'), []),
  plural('x509Certificates', 'Certificates of the person', binary('value', 'The certificate (DER, base64)'), []),
];

/** The enterprise extension (RFC 7643, 4.3). */
export const enterpriseAttributes: readonly ScimAttribute[] = [
  text('employeeNumber', 'The number of the employee'),
  text('costCenter', 'The cost center'),
  text('organization', 'The organization'),
  text('division', 'The division'),
  text('department', 'The department'),
  complex('manager', 'The manager', [
    text('value', 'The id of the manager', { caseExact: true }),
    link('$ref', 'Where the manager is', ['User']),
    text('displayName', 'The name of the manager', { mutability: 'readOnly' }),
  ]),
];

/** What every resource has (RFC 7643, 3.1); `externalId` alone is a client's to set. */
export const commonAttributes: readonly ScimAttribute[] = [
  { ...link('schemas', 'The schemas of the resource', ['uri']), multiValued: true, returned: 'always' },
  text('id', 'The id here', { caseExact: true, mutability: 'readOnly', returned: 'always', uniqueness: 'server' }),
  text('externalId', 'The id at the client', { caseExact: true }),
  complex(
    'meta',
    'About the resource',
    [
      text('resourceType', 'The kind of the resource', { caseExact: true, mutability: 'readOnly' }),
      moment('created', 'When it was made', { mutability: 'readOnly' }),
      moment('lastModified', 'When it was last changed', { mutability: 'readOnly' }),
      link('location', 'Where it is', ['uri'], { mutability: 'readOnly' }),
      text('version', 'Its entity tag', { caseExact: true, mutability: 'readOnly' }),
    ],
    { mutability: 'readOnly' },
  ),
];

/** An attribute by its path. Without an attribute it is the extension as a whole. */
export interface ScimPath {
  readonly extension: boolean;
  readonly attribute: ScimAttribute | undefined;
  readonly sub: ScimAttribute | undefined;
}

/** Reads `name.familyName`, also with the URN of its schema before it (RFC 7644, 3.10). */
export function pathOf(spelled: string): ScimPath | undefined {
  const lower = spelled.toLowerCase();
  if (lower === ENTERPRISE.toLowerCase()) return { extension: true, attribute: undefined, sub: undefined };
  const urn = [ENTERPRISE, USER].find(each => lower.startsWith(`${each.toLowerCase()}:`));
  const [first = '', second, ...more] = spelled.slice(urn ? urn.length + 1 : 0).split('.');
  const extension = urn === ENTERPRISE;
  const attribute = named(
    extension ? enterpriseAttributes : urn === USER ? userAttributes : [...commonAttributes, ...userAttributes],
    first,
  );
  if (!attribute || more.length > 0) return undefined;
  if (second === undefined) return { extension, attribute, sub: undefined };
  const sub = named(attribute.subAttributes, second);
  return sub ? { extension, attribute, sub } : undefined;
}
