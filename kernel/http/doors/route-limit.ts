import { type Caller, type Limit, type LimitOptions, networkOf, type RouteRate } from '@platform/sdk';
import type { Incoming } from '../operation-call.ts';

/** The rate that a route declares, whatever its door. */
export class RouteLimit {
  readonly #limit: Limit;
  readonly #by: RouteRate['by'];

  constructor(operation: string, { max, seconds, by }: RouteRate, limit: (options: LimitOptions) => Limit) {
    this.#limit = limit({ name: operation, max, seconds });
    this.#by = by;
  }

  /** Counts a request. Throws `rate_limited` when it is one too many. */
  async require({ ip }: Incoming, caller: Caller | undefined): Promise<void> {
    const known = this.#by === 'caller' ? (caller?.userId ?? caller?.subject) : undefined;
    // Beside the limits that the service makes of the same name.
    await this.#limit.require(`route ${known ?? networkOf(ip)}`);
  }
}
