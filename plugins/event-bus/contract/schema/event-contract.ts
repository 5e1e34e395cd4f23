import { ServiceId, type Static, Type } from '@platform/sdk/contract';

/** The events one service of a vertical may publish, each with the JSON Schema of its payload. */
export const EventContract = Type.Object({
  service: ServiceId,
  vertical: ServiceId,
  version: Type.String({ maxLength: 128 }),
  events: Type.Record(Type.String({ maxLength: 260 }), Type.Object({}, { additionalProperties: true })),
});
export type EventContract = Static<typeof EventContract>;
export const EventContractKept = Type.Object({ service: ServiceId, version: Type.String(), changed: Type.Boolean() });
