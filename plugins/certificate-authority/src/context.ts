import type { Context } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';

export type Ctx = Context<typeof certificateAuthority>;
