import type { PlatformContext } from '@platform/sdk';
import type { certificateAuthority } from '@platform/certificate-authority/contract';
import type { registry } from '@platform/registry/contract';
import type { ingress } from '../contract/index.ts';

export type Contract = typeof ingress;
export type Ctx = PlatformContext<Contract, { authority: typeof certificateAuthority; registry: typeof registry }>;
