import type { PlatformContext } from '@platform/sdk';
import type { storage } from '../contract/index.ts';

export type StorageContext = PlatformContext<typeof storage>;
