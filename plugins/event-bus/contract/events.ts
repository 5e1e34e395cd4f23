import { event, Id, Type } from '@platform/sdk/contract';

/** What the bus itself says (G-BUS-10). */
export const events = {
  'platform:bus:dlq:added': event(
    'An event became a dead letter',
    Type.Object({ dlq_id: Id, stream_family: Type.String(), event_type: Type.String(), reason: Type.String() }),
  ),
  'platform:bus:dlq:replayed': event('A dead letter was replayed', Type.Object({ dlq_id: Id, message_id: Type.String() })),
} as const;
