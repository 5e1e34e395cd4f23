import { Type } from '@platform/sdk/contract';
import { nullable, Stamp } from './field.ts';

export const Access = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('viewer')]);
export const Member = Type.Object({ user_id: Type.String(), email: Type.String(), display_name: nullable(Type.String()), groups: Type.Array(Type.String()), access: Access, joined_at: Stamp });
