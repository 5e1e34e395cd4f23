interface CallerBase {
  /** `sub` of the token, or the workload's name. */
  readonly subject: string;
  readonly clientId: string;
  /** Environment of the request: the token's, or the target of a delegated token. */
  readonly envId: string | undefined;
  readonly authEnvId: string | undefined;
  /** x5t#S256 of the presented certificate, when one was. */
  readonly thumbprint: string | undefined;
  readonly vertical: string | undefined;
  /** Platform administrator (`sys:sys:admin` in the system environment). */
  readonly platformAdmin: boolean;
  /** Whether the identity is bound to the presented certificate (RFC 8705). */
  readonly bound: boolean;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  readonly sessionId: string | undefined;
}
/** A person, or a workload acting for one: `userId` is `act.sub` where present, else `sub` (G-K-06). */
export interface UserCaller extends CallerBase {
  readonly kind: 'user' | 'delegated';
  readonly userId: string;
  readonly service: string | undefined;
}
/** A workload: `service` is its name up to the first hyphen, from the certificate (G-K-09). */
export interface MachineCaller extends CallerBase {
  readonly kind: 'machine';
  readonly userId: undefined;
  readonly service: string;
}
export type Caller = UserCaller | MachineCaller;

/** The sender of a request, with what this very credential permits. */
export interface Sender {
  readonly caller: Caller;
  permits(action: string): Promise<boolean>;
}
