import type { Request } from '@platform/sdk';
import type { Incoming } from '../operation-call.ts';
import { versionsOf } from '../precondition.ts';

/**
 * A request as its handler sees it. A class for its one getter: in a literal, a getter gives every object a shape of its own, and such
 * shapes are long-lived; everything that the getter sees would then live until the next full collection (bench: http).
 */
export class OpenedRequest implements Request {
  readonly params: Request['params'];
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Request['caller'];
  readonly headers: Request['headers'];
  readonly targetEnvId: string | undefined;
  readonly env: string | undefined;
  readonly ifMatch: readonly number[] | undefined;
  readonly correlationId: string;
  readonly ip: string;
  readonly hostname: string;
  readonly tenant: Request['tenant'];
  readonly peer: Request['peer'];
  readonly #signal: () => AbortSignal;

  constructor(incoming: Incoming, read: Pick<Request, 'query' | 'body' | 'caller' | 'targetEnvId' | 'env'>) {
    this.params = incoming.params;
    this.query = read.query;
    this.body = read.body;
    this.caller = read.caller;
    this.headers = incoming.headers;
    this.targetEnvId = read.targetEnvId;
    this.env = read.env;
    this.ifMatch = versionsOf(incoming.headers['if-match']);
    this.correlationId = incoming.correlationId;
    this.ip = incoming.ip;
    this.hostname = incoming.hostname;
    this.tenant = incoming.tenant;
    this.peer = incoming.peer;
    this.#signal = incoming.signal;
  }

  get signal(): AbortSignal {
    return this.#signal();
  }
}
