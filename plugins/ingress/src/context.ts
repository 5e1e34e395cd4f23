import type { Context } from '@platform/sdk';
import type { certificateAuthority } from '@platform/certificate-authority/contract';
import type { registry } from '@platform/registry/contract';
import type { ingress } from '../contract/index.ts';

export type Ctx = Context<typeof ingress, { authority: typeof certificateAuthority; registry: typeof registry }>;
