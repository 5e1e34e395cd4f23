import { Id, Type } from '@platform/sdk/contract';

const Effect = Type.Union([Type.Literal('permit'), Type.Literal('deny')]);

/** A person and whether policy lets them use what they hold. */
export const Holder = Type.Object({
  user_id: Id,
  email: Type.String(),
  display_name: Type.Union([Type.String(), Type.Null()]),
  /** Groups and roles that give it, as `group:{name}` and `role:{name}`, separated by commas. */
  via: Type.String(),
  effect: Effect,
  /** How it was decided, step by step. */
  why: Type.String(),
});

/** An action a principal holds, and whether policy lets it be used. */
export const HeldAction = Type.Object({
  action: Type.String(),
  service: Type.String(),
  title: Type.String(),
  effect: Effect,
  why: Type.String(),
});
