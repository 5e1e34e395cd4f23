import { type Static, Type } from '@platform/sdk/contract';

export const StoredObject = Type.Object({
  key: Type.String(),
  owner: Type.String(),
  env_id: Type.Union([Type.String(), Type.Null()]),
  size: Type.Integer(),
  sha256: Type.String(),
  content_type: Type.String(),
  created_at: Type.String(),
  updated_at: Type.String(),
});
export type StoredObject = Static<typeof StoredObject>;

export const Usage = Type.Object({
  backend: Type.Union([Type.Literal('files'), Type.Literal('s3')]),
  objects: Type.Integer(),
  bytes: Type.Integer(),
  /** Bytes of objects that are gone, until they are deleted. */
  waiting_bytes: Type.Integer(),
  uploads: Type.Integer(),
  swept_at: Type.Union([Type.String(), Type.Null()]),
  sweep_removed: Type.Integer(),
  services: Type.Array(Type.Object({ owner: Type.String(), objects: Type.Integer(), bytes: Type.Integer(), newest: Type.String() })),
});
export type Usage = Static<typeof Usage>;

/** One step of a check; `next` is where the next one begins. */
export const Integrity = Type.Object({
  checked: Type.Integer(),
  bytes: Type.Integer(),
  faults: Type.Array(
    Type.Object({ key: Type.String(), fault: Type.Union([Type.Literal('missing'), Type.Literal('changed'), Type.Literal('unreadable')]) }),
  ),
  next: Type.Union([Type.String(), Type.Null()]),
});
export type Integrity = Static<typeof Integrity>;

/** What was written. */
export const Written = Type.Object({ key: Type.String(), size: Type.Integer(), sha256: Type.String() });
export type Written = Static<typeof Written>;
