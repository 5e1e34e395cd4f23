import type { PlatformContext } from '@platform/sdk';
import type { certificateAuthority } from '../contract/index.ts';

export type Ctx = PlatformContext<typeof certificateAuthority>;
