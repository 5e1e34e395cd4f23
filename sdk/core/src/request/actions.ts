import type { UserCaller } from './caller.ts';

/** A route that a service offers to others by name, `{service}:{route}`, as the registry has it now (`dispatch: true`; G-BFF-06). */
export interface RegisteredAction {
  readonly action: string;
  readonly service: string;
  readonly vertical: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly path: string;
  /** What whoever it is done for must hold, in the environment where it takes effect. */
  readonly policy_action: string;
}

export interface ActionCall {
  /** The members of its path, its query and its body together. */
  readonly params?: Readonly<Record<string, unknown>>;
  /**
   * Whom it is done for: `request.caller`, or a person whom the service has written down. Whether this person may is asked at the moment of
   * the call. A credential that says less than its holder may is taken at its word.
   */
  readonly onBehalfOf: UserCaller;
  /** Where it takes effect; the environment of the person when absent. */
  readonly targetEnvId?: string | undefined;
  readonly idempotencyKey?: string;
  readonly signal?: AbortSignal;
}

/** An action that was found, with parameters that fit, for somebody who may. */
export interface PermittedCall {
  readonly action: RegisteredAction;
  readonly params: Readonly<Record<string, unknown>>;
  readonly envId: string;
  /** The environment that was named, by `targetEnvId` or by a parameter. */
  readonly targetEnvId: string | undefined;
  /** Path and query, as they go out. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

/** Calls of services that are known only at run time. The contract must use `sys` with `sys:read`. */
export interface Actions {
  /**
   * Calls a registered action for a person, as this service, over mutual TLS and within ten seconds: the person must be permitted, and
   * this service too, by its `uses` or by the `callers` of the action. Gives what the other service answered; a problem of it comes under
   * its own name. Throws 404 `action_not_found`, 400 `malformed` with `errors` where the parameters do not fit, 400 `target_mismatch` and
   * `target_env_required`, 403 `policy_denied`, 503 `not_ready` while the registry has not been heard, and 502 to 504 where the service
   * cannot be reached; in the words of the caller's own contract where it declares these codes.
   */
  run(action: string, call: ActionCall): Promise<unknown>;
}

/** A post to the internal path that a service gave when it asked to be called back. */
export interface CallBack {
  readonly service: string;
  readonly path: string;
  /** Bytes go out as they are, anything else as JSON. */
  readonly body: unknown;
  /** The environment it is about, if it is about one. */
  readonly envId?: string;
  readonly correlationId?: string;
  readonly idempotencyKey?: string;
  /** Further headers, none of which says who asks. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the whole call may last on the clock. */
  readonly timeoutMs: number;
  /** The longest answer that is read. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

/** `bytes` is undefined where the answer is longer than asked for. */
export interface CalledBack {
  readonly status: number;
  readonly bytes: Uint8Array | undefined;
}

/** What services of the platform do beside it (capability `backends`). */
export interface PlatformActions extends Actions {
  /** The same up to the call, which `send` makes with a credential of the person: for the gateway, which holds one. */
  send(action: string, call: ActionCall, send: (call: PermittedCall) => Promise<Response>): Promise<Response>;
  /**
   * Posts as this service to another one's internal path, over mutual TLS; whether it may is the other service's to say, by the `callers`
   * of its action. One try: whoever asks keeps what is to be tried again. Throws when no answer came whole.
   */
  callBack(call: CallBack): Promise<CalledBack>;
}
