import type { Context } from '@platform/sdk';
import type { storage } from '../contract/index.ts';

export type StorageContext = Context<typeof storage>;
