import { event, Id, Type } from '@platform/sdk/contract';

/** Ids alone: what a run carries may be personal. `service` started it, under `idempotency_key`. */
const ended = { run_id: Id, workflow: Type.String(), service: Type.String(), idempotency_key: Type.String() };

/** G-WFL-01: told in the transaction in which a run ends. */
export const events = {
  'platform:workflow:run:completed': event('A workflow ran to its end', Type.Object(ended)),
  'platform:workflow:run:failed': event(
    'A workflow failed, expired, or was cancelled',
    Type.Object({ ...ended, code: Type.String(), step_id: Type.Optional(Id) }),
  ),
};
