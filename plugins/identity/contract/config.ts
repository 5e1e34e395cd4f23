import { Type } from '@platform/sdk/contract';
import { recoveryConfig } from './schema/recovery.ts';

/** Settings of the service; an environment's own are a record of its realm. */
export const config = Type.Object({
  bootstrapEmail: Type.Optional(
    Type.String({
      env: 'PLATFORM_AUTH_BOOTSTRAP_EMAIL',
      pattern: '^[^@\\s]+@[^@\\s]+$',
      description: 'E-mail of the first administrator; admin@ops.sys.{domain} when unset',
    }),
  ),
  bootstrapPasswordRef: Type.Optional(
    Type.String({
      env: 'PLATFORM_AUTH_BOOTSTRAP_PASSWORD_REF',
      description: "Secret reference of the first administrator's one-time password",
    }),
  ),
  internalTokenAlg: Type.Union([Type.Literal('EdDSA'), Type.Literal('ES256'), Type.Literal('ML-DSA-65')], {
    env: 'PLATFORM_AUTH_INTERNAL_TOKEN_ALG',
    default: 'EdDSA',
    description: 'Signature of tokens that only services of the platform read; applications get EdDSA or ES256, as they registered',
  }),
  keyRotationDays: Type.Integer({
    env: 'PLATFORM_AUTH_KEY_ROTATION_DAYS',
    default: 30,
    minimum: 1,
    maximum: 3_650,
    description: 'Days after which the signing keys are rotated',
  }),
  passkeys: Type.Boolean({
    env: 'PLATFORM_AUTH_PASSKEYS',
    default: false,
    description: "Whether the platform's own people may sign in with passkeys; an environment says so for its realm",
  }),
  ...recoveryConfig,
});
