import { Type } from '@platform/sdk/contract';

export const Status = Type.Union([Type.Literal('active'), Type.Literal('suspended'), Type.Literal('archived')]);
export const Stamp = Type.String();
export const Name = Type.String({ minLength: 1, maxLength: 100 });
export const Domain = Type.String({ pattern: '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$' });
