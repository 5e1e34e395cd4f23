import type { ScimAttribute } from './scim-attribute.ts';
import type { ScimDocument } from './scim-document.ts';
import { ScimError } from './scim-error.ts';
import { SCIM_BYTES } from '../../contract/routes/directory-routes.ts';
import { commonAttributes, ENTERPRISE, enterpriseAttributes, USER, userAttributes } from './scim-user-schema.ts';

/** Most operations of one bulk request, and bytes of any request. */
export const BULK = { operations: 100, bytes: SCIM_BYTES } as const;

const CONFIG = 'urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig';
const RESOURCE_TYPE = 'urn:ietf:params:scim:schemas:core:2.0:ResourceType';
const SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:Schema';

const wireOf = ({ subAttributes, ...attribute }: ScimAttribute): object => ({
  ...attribute,
  ...(subAttributes ? { subAttributes: subAttributes.map(wireOf) } : {}),
});

/** What this service can do, and what a user is (RFC 7643, 5 to 7; RFC 7644, 4). */
export function discovered(base: string, kind: string, id: string | undefined): object | readonly object[] {
  const meta = (resourceType: string, path: string) => ({ resourceType, location: `${base}${path}` });
  const schema = (urn: string, name: string, description: string, attributes: readonly ScimAttribute[]) => ({
    schemas: [SCHEMA],
    id: urn,
    name,
    description,
    attributes: attributes.map(wireOf),
    meta: meta('Schema', `/Schemas/${urn}`),
  });
  const lists: Readonly<Record<string, readonly object[]>> = {
    Schemas: [
      schema(USER, 'User', 'A person with an account', [
        ...commonAttributes.filter(({ name }) => name === 'externalId'),
        ...userAttributes,
      ]),
      schema(ENTERPRISE, 'EnterpriseUser', 'A person in an organization', enterpriseAttributes),
    ],
    ResourceTypes: [
      {
        schemas: [RESOURCE_TYPE],
        id: 'User',
        name: 'User',
        description: 'A person with an account',
        endpoint: '/Users',
        schema: USER,
        schemaExtensions: [{ schema: ENTERPRISE, required: false }],
        meta: meta('ResourceType', '/ResourceTypes/User'),
      },
    ],
  };
  if (kind === 'ServiceProviderConfig' && id === undefined) return configOf(meta('ServiceProviderConfig', '/ServiceProviderConfig'));
  const list = lists[kind];
  const found = id === undefined ? list : list?.find(each => (each as { id: string }).id.toLowerCase() === id.toLowerCase());
  if (!found) throw new ScimError(404, 'Nothing is here.');
  return found;
}

export const isDiscovery = (kind: string): boolean => kind === 'ServiceProviderConfig' || kind === 'Schemas' || kind === 'ResourceTypes';

const configOf = (meta: object): ScimDocument | object => ({
  schemas: [CONFIG],
  patch: { supported: true },
  bulk: { supported: true, maxOperations: BULK.operations, maxPayloadSize: BULK.bytes },
  filter: { supported: true, maxResults: 200 },
  changePassword: { supported: true },
  sort: { supported: true },
  etag: { supported: true },
  authenticationSchemes: [
    {
      type: 'oauthbearertoken',
      name: 'OAuth bearer token',
      description: 'An access token with scim:read or scim:write (RFC 6750)',
      specUri: 'https://www.rfc-editor.org/info/rfc6750',
      primary: true,
    },
  ],
  meta,
});
