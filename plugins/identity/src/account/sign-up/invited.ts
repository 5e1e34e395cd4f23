import { isProblem, SYSTEM } from '@platform/sdk';
import type { Ctx } from '../../context.ts';
import type { People } from '../../people/people.ts';
import type { Realm } from '../../realms.ts';

const ANSWER_MS = 2_000;
const REFERENCE = /^[A-Za-z0-9_-]{43}$/;

/** Who invites where to, for the pages. */
export interface Invitation {
  readonly organization: string;
  readonly inviter: string | undefined;
  readonly email: string;
}

/**
 * Invitations to organizations, as far as an account has to do with them: what the pages say, and joining when the address is proved
 * (F-51).
 */
export class Invited {
  readonly #ctx: Ctx;
  readonly #people: People;

  constructor(ctx: Ctx, people: People) {
    this.#ctx = ctx;
    this.#people = people;
  }

  /**
   * An invitation that can still be accepted, at the realm whose people organizations invite. Nothing where the registry is away: pages
   * never fail by it.
   */
  async open(realm: Realm, reference: string | undefined): Promise<Invitation | undefined> {
    if (realm.env_id !== SYSTEM.envId || reference === undefined || !REFERENCE.test(reference)) return undefined;
    try {
      const signal = AbortSignal.timeout(ANSWER_MS);
      const { open, org_name, email, inviter, invited_by } = await this.#ctx.services.registry.describeInvitation({
        params: { reference },
        signal,
      });
      if (!open) return undefined;
      const person = inviter === null ? await this.#people.byId(invited_by) : undefined;
      return { organization: org_name, inviter: inviter ?? person?.display_name ?? person?.email, email };
    } catch (error) {
      if (!isProblem(error) || error.status !== 404) this.#ctx.log.debug({ err: error }, 'what an invitation says is not to be had');
      return undefined;
    }
  }

  /** Whether somebody can open an account with this address by the invitation. */
  async admits(realm: Realm, reference: string | undefined, email: string): Promise<boolean> {
    return (await this.open(realm, reference))?.email.trim().toLowerCase() === email.trim().toLowerCase();
  }

  /** Whether the person has no account yet, so that the way begins with one. */
  async isNew(realm: Realm, invitation: Invitation): Promise<boolean> {
    return (await this.#people.byEmail(realm.env_id, invitation.email.trim())) === undefined;
  }

  /**
   * Makes the person a member. What stands in the way is told where the link of the invitation leads; the address is proved all the same.
   */
  async join(reference: string, person: { readonly user_id: string; readonly email: string }): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(5 * ANSWER_MS);
      await this.#ctx.services.registry.joinInvited({
        params: { reference },
        body: { user_id: person.user_id, email: person.email },
        signal,
      });
      return true;
    } catch (error) {
      this.#ctx.log.warn(
        { err: error, user_id: person.user_id },
        'an invited person is not a member yet; the link of the invitation still is good',
      );
      return false;
    }
  }
}
