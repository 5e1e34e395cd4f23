import { Id, type Static, Type } from '@platform/sdk/contract';
import { Channel } from './send.ts';

const nullable = Type.Union([Type.String(), Type.Null()]);
export const GatewayScope = Type.Union(
  [
    Type.Literal('env', { title: 'This environment' }),
    Type.Literal('org', { title: 'Its organization' }),
    Type.Literal('sys', { title: 'The platform' }),
  ],
  {
    title: 'Serves',
  },
);
export type GatewayScope = Static<typeof GatewayScope>;
export const SimulatedFailure = Type.Object({
  mode: Type.Union([Type.Literal('always'), Type.Literal('first_n')]),
  n: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
  error: Type.Optional(Type.String({ maxLength: 500 })),
});
export const GatewayConfig = Type.Object({
  from: Type.Optional(Type.String({ minLength: 3, maxLength: 400 })),
  simulate_failure: Type.Optional(SimulatedFailure),
});
export type GatewayConfig = Static<typeof GatewayConfig>;
/** A reference; any other member is refused as a literal credential. */
export const Credentials = Type.Object(
  {},
  { additionalProperties: true, description: '{"secret_ref": "secrets://…"}: a reference, never the secret itself' },
);

const settings = {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  channel: Channel,
  gateway_url: Type.Optional(
    Type.Union([Type.String({ maxLength: 200 }), Type.Null()], {
      title: 'Address',
      description: 'smtp://host:587, smtps://host:465, or https://relay/send',
    }),
  ),
  credentials: Type.Optional(
    Type.Union([Credentials, Type.Null()], { description: '{"secret_ref": "secrets://…"}: a reference, never the secret itself' }),
  ),
  config: Type.Optional(
    Type.Object(GatewayConfig.properties, {
      title: 'Settings',
      description: '{"from": "Name <address>"}; {"simulate_failure": {"mode": "always"}} makes it fail',
    }),
  ),
  enabled: Type.Optional(Type.Boolean({ default: true })),
};
/** G-POST-04. */
export const NewGateway = Type.Object({
  ...settings,
  scope: Type.Optional(GatewayScope),
  org_id: Type.Optional(Id),
  env_id: Type.Optional(Id),
});
export type NewGateway = Static<typeof NewGateway>;
export const GatewayChange = Type.Object({ ...settings, channel: Type.Optional(Channel), name: Type.Optional(settings.name) });
export type GatewayChange = Static<typeof GatewayChange>;

export const Gateway = Type.Object({
  gateway_id: Id,
  scope: Type.Union([Type.Literal('sys'), Type.Literal('org'), Type.Literal('env')]),
  org_id: nullable,
  env_id: nullable,
  channel: Channel,
  name: Type.String(),
  gateway_url: nullable,
  credentials: Type.Union([Type.Object({ secret_ref: Type.String() }), Type.Null()]),
  config: GatewayConfig,
  enabled: Type.Boolean(),
  version: Type.Integer(),
  created_at: Type.String(),
  updated_at: Type.String(),
});
export type Gateway = Static<typeof Gateway>;

const tested = {
  recipient: Type.String({ minLength: 1, maxLength: 1_000 }),
  subject: Type.Optional(Type.String({ maxLength: 500 })),
  body: Type.Optional(Type.String({ maxLength: 100_000 })),
};
export const GatewayTest = Type.Object({ ...tested, gateway_id: Type.Optional(Id), gateway: Type.Optional(NewGateway) });
export type GatewayTest = Static<typeof GatewayTest>;
export const OneGatewayTest = Type.Object(tested);
export const TestResult = Type.Object({
  ok: Type.Boolean(),
  adapter: Type.String(),
  latency_ms: Type.Integer(),
  error: Type.Optional(Type.String()),
});
export type TestResult = Static<typeof TestResult>;
