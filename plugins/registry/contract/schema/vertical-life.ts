import { ServiceId, type Static, Type } from '@platform/sdk/contract';
import { Stamp } from './field.ts';

/**
 * known: its folder was found · enabled: its process registered it · draining: somebody takes it out, and it ends what it has begun ·
 * gone: nothing of it is left but this word.
 */
export const VerticalLife = Type.Union([Type.Literal('known'), Type.Literal('enabled'), Type.Literal('draining'), Type.Literal('gone')]);
export type VerticalLife = Static<typeof VerticalLife>;

export const LivingService = Type.Object({
  service: Type.String(),
  vertical: Type.String(),
  label: Type.String(),
  /** Of the plugin, and of everything its vertical registered: another one says that something changed. */
  version: Type.String(),
  life: VerticalLife,
  since: Stamp,
  stream_families: Type.Array(Type.String()),
  /** Processes that the shared registry of instances knows of. */
  instances: Type.Integer(),
  /** What an operator may do next; services of the platform stay. */
  next: Type.Union([Type.Literal('take_out'), Type.Literal('bring_back'), Type.Literal('nothing')]),
});
export type LivingService = Static<typeof LivingService>;

export const FoundService = Type.Object({
  vertical: ServiceId,
  version: Type.String({ maxLength: 200 }),
  label: Type.String({ maxLength: 200 }),
});

/** A step in the life of a service; `before` is null for one that was not known. */
export const VerticalStep = Type.Object({
  service: Type.String(),
  vertical: Type.String(),
  life: VerticalLife,
  before: Type.Union([VerticalLife, Type.Null()]),
  at: Stamp,
});
export type VerticalStep = Static<typeof VerticalStep>;
