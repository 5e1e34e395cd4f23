import type { Caller } from '../request/caller.ts';

type AttributeScalar = string | number | boolean;
/** What the policy administration keeps under one key of a principal (G-K-10). */
export type AttributeValue = AttributeScalar | readonly AttributeScalar[];

/** What a plugin may ask of policies beside the gates of its routes, and what of them it may write. */
export interface Policies {
  /**
   * What the policy administration says of a principal in an environment: the attributes of this service (G-K-10), as of the last look.
   */
  attributes(principal: string, envId: string): Promise<Readonly<Record<string, unknown>>>;
  /**
   * Writes attributes of a principal, all or none; `null` takes one away. Every process of this service goes by them within seconds, as it
   * does by those that an administrator writes (G-K-10). Who may ask for it is the plugin's to see to; the audit trail says which
   * attributes changed in the name of `caller`, and none of their values. Fails with `sys`'s problems while the registry is away.
   * @returns all attributes of the principal, as they were and as they are
   */
  setAttributes(
    principal: string,
    envId: string,
    values: Readonly<Record<string, AttributeValue | null>>,
    caller: Caller,
  ): Promise<{ readonly before: Readonly<Record<string, unknown>>; readonly after: Readonly<Record<string, unknown>> }>;
  /** A finer question than the gate's, for the credential of the caller's request; the decision is logged once with its reason. */
  allows(caller: Caller, action: string, resource?: { type: string; id: string }): Promise<boolean>;
}
