import { Type, type Static } from '@platform/sdk/contract';

const Service = Type.String({ pattern: '^[a-z][a-z0-9]{0,30}$' });

/** The events one service of a vertical may publish, each with the JSON Schema of its payload. */
export const EventContract = Type.Object({
  service: Service,
  vertical: Service,
  version: Type.String({ maxLength: 128 }),
  events: Type.Record(Type.String({ maxLength: 260 }), Type.Object({}, { additionalProperties: true })),
});
export type EventContract = Static<typeof EventContract>;
export const EventContractKept = Type.Object({ service: Service, version: Type.String(), changed: Type.Boolean() });
