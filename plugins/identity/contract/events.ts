import { event, Id, Type } from '@platform/sdk/contract';

/** What happens to people, their sessions and the applications that they sign in to. */
export const events = {
  'platform:auth:session:revoked': event(
    'A session ended before its time',
    Type.Object({
      session_id: Type.String(),
      user_id: Id,
      env_id: Id,
      reason: Type.Union([
        Type.Literal('sign_out'),
        Type.Literal('admin'),
        Type.Literal('password_change'),
        Type.Literal('reuse_detected'),
        Type.Literal('expired'),
      ]),
      revoked_at: Type.String(),
    }),
  ),
  'platform:auth:client:created': event('An application can be signed in to', Type.Object({ client_id: Type.String(), env_id: Id })),
  'platform:auth:client:updated': event('An application is another one than before', Type.Object({ client_id: Type.String(), env_id: Id })),
  'platform:auth:client:deleted': event(
    'An application cannot be signed in to any more',
    Type.Object({ client_id: Type.String(), env_id: Id }),
  ),
  'platform:auth:user:created': event('A person has an account', Type.Object({ user_id: Id, env_id: Id })),
  'platform:auth:user:updated': event('An account changed', Type.Object({ user_id: Id, env_id: Id })),
  'platform:auth:user:deleted': event('An account is gone', Type.Object({ user_id: Id, env_id: Id })),
  'platform:auth:recovery:updated': event(
    'The recovery of an account went on, or ended',
    Type.Object({ recovery_id: Id, user_id: Id, env_id: Id, status: Type.String() }),
  ),
} as const;
