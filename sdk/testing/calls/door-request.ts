import type { Persona } from '../persona.ts';
import type { WireRequest } from './wire-request.ts';

/** A request to a door, and who sends it: a persona with a token of its own, or with any other. */
export interface DoorRequest {
  readonly method?: string;
  readonly persona?: Persona;
  readonly token?: string;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: WireRequest['body'];
  readonly as?: { cert: string; key: string };
  readonly host?: string;
  /** Cuts the connection before the end of the body. */
  readonly cut?: boolean;
}
