import { SYSTEM } from '@platform/sdk';

export const ENV = SYSTEM.envId;
export const EVENT_TYPE = 'platform:bench:event:sent';
/** With everything around it 256 bytes. */
export const PAYLOAD = { filler: 'x'.repeat(240) };
