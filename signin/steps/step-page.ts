import type { Markup } from '../markup.ts';
import type { Messages } from '../messages-en.ts';
import type { Query } from '../oauth-context.ts';

/** Who invites where to, and whom. */
export interface Invitation {
  readonly organization: string;
  readonly inviter: string | undefined;
  readonly email: string;
}

export interface StepInput {
  readonly m: Messages;
  readonly query: Query;
  readonly displayName: string;
  /** What the provider of the organization is called; without one the button explains itself. */
  readonly sso: string | undefined;
  readonly passkeys: boolean;
  readonly recovery: boolean;
  readonly allowSignUp: boolean | undefined;
  readonly walletSignIn: boolean | undefined;
  readonly invitation: Invitation | undefined;
}

export interface StepContent {
  readonly title: string;
  readonly lead?: string | Markup | undefined;
  readonly body: Markup;
  readonly foot?: Markup | undefined;
  readonly wide?: boolean;
}

export type StepPage = (input: StepInput) => StepContent;
