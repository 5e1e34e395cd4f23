import { Type } from '@platform/sdk/contract';

const Grant = Type.Union([
  Type.Literal('authorization_code', { title: 'People sign in with a browser' }),
  Type.Literal('refresh_token', { title: 'They stay signed in' }),
  Type.Literal('urn:ietf:params:oauth:grant-type:device_code', { title: 'People sign in on a device without a browser' }),
]);
const Method = Type.Union([
  Type.Literal('client_secret_basic', { title: 'A secret, as HTTP Basic' }),
  Type.Literal('client_secret_post', { title: 'A secret, in the form' }),
  Type.Literal('none', { title: 'Nothing: it runs in a browser or on a device' }),
]);
const Alg = Type.Union([Type.Literal('EdDSA'), Type.Literal('ES256'), Type.Literal('RS256'), Type.Literal('ML-DSA-65')]);
const Kind = Type.Union([
  Type.Literal('web', { title: 'On a server, or in a browser' }),
  Type.Literal('native', { title: 'Installed on a device' }),
]);
const Address = Type.String({ maxLength: 2_000, pattern: '^https://\\S+$' });

/** What an administrator says about an application; the members are those of RFC 7591. */
const said = {
  client_name: Type.String({ minLength: 1, maxLength: 200, title: 'Name' }),
  redirect_uris: Type.Optional(
    Type.Union([Type.String({ maxLength: 20_000 }), Type.Array(Type.String({ maxLength: 2_000 }), { maxItems: 20 })], {
      title: 'Redirect addresses',
      description: 'One a line: where people come back to. Addresses are compared letter by letter',
    }),
  ),
  grant_types: Type.Optional(
    Type.Array(Grant, { maxItems: 3, title: 'How people sign in', default: ['authorization_code', 'refresh_token'] }),
  ),
  token_endpoint_auth_method: Type.Optional(Type.Union(Method.anyOf, { title: 'How it proves who it is', default: 'client_secret_basic' })),
  application_type: Type.Optional(Type.Union(Kind.anyOf, { title: 'Where it runs', default: 'web' })),
  scope: Type.Optional(
    Type.String({
      maxLength: 4_000,
      title: 'Scopes',
      description: 'What it may ask people for, with spaces between; e-mail and profile unless you say otherwise',
    }),
  ),
  first_party: Type.Optional(
    Type.Boolean({ title: 'Your own application', description: 'Nobody is asked for consent, and it may do whatever the person may' }),
  ),
  logo_uri: Type.Optional(
    Type.String({ ...Address, title: 'Logo', description: 'An https address of an image; people see it when they are asked' }),
  ),
  id_token_signed_response_alg: Type.Optional(
    Type.Union(Alg.anyOf, { title: 'Signature of ID tokens', default: 'EdDSA', description: 'RS256 for libraries that know nothing else' }),
  ),
};
export const NewApplication = Type.Object(said);
export const Application = Type.Object({
  client_id: Type.String(),
  client_name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  grant_types: Type.Array(Type.String()),
  token_endpoint_auth_method: Type.String(),
  application_type: Type.String(),
  scope: Type.String(),
  first_party: Type.Boolean(),
  logo_uri: Type.Union([Type.String(), Type.Null()]),
  id_token_signed_response_alg: Type.String(),
  has_secret: Type.Boolean(),
  registered_by: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
});
/** The secret is told in this answer and never again. */
export const IssuedApplication = Type.Object({ ...Application.properties, client_secret: Type.Optional(Type.String()) });
