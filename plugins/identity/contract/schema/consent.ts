import { Type } from '@platform/sdk/contract';
import { Asking } from './protocol.ts';

/** An application that somebody else runs, what the person allowed it, and since when. */
export const OwnConsent = Type.Object({ client_id: Type.String(), ...Asking.properties, granted_at: Type.String() });
