/** An application that people reach through this gateway. */
export interface App {
  readonly appInstanceId: string;
  readonly envId: string;
  readonly clientId: string;
  /** Host of the identity service that the application's people sign in at. */
  readonly issuerHost: string;
  /** `open`: everybody with an account of the environment; otherwise only members of a group (F-A, G-SYS-08). */
  readonly gate: 'open' | { readonly group: string /** Who is invited may come in before, to accept (D-02). */; readonly orInvited?: true };
  readonly allowSignup: boolean;
  /** Services it may call; the console's are all that exist (C11). */
  readonly services: 'all' | ReadonlySet<string>;
  readonly scopes: ReadonlySet<string> | undefined;
}
