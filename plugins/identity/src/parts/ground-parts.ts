import { AccessModel } from '../access/access-model.ts';
import { AccessTemplates } from '../access/access-templates.ts';
import { EffectiveAccess } from '../access/effective-access.ts';
import { ScopeHolders } from '../access/scope-holders.ts';
import { Workloads } from '../access/workloads.ts';
import { AccountMailbox } from '../account/account-mail.ts';
import { Invited } from '../account/sign-up/invited.ts';
import { KeyRotation } from '../keys/key-rotation.ts';
import { SigningKeys } from '../keys/signing-keys.ts';
import { Passwords } from '../people/passwords.ts';
import { People } from '../people/people.ts';
import { TokenVerifier } from '../protocol/tokens/token-verifier.ts';
import { Realms } from '../realms.ts';
import { Attempts } from '../sign-in/attempts.ts';
import { Sessions } from '../sign-in/sessions.ts';
import { SignInSettings } from '../sign-in/sign-in-settings.ts';
import type { Ctx } from '../context.ts';

/** What everything else of the service stands on: keys, realms, access, people and their sessions. */
export async function groundParts(ctx: Ctx) {
  const box = ctx.keys.signing;
  const keys = new SigningKeys(ctx, box);
  await keys.start();
  const realms = new Realms(ctx);
  const access = new EffectiveAccess(ctx);
  const attempts = new Attempts(ctx, box);
  const people = new People(ctx, { access, attempts });
  return {
    access,
    attempts,
    box,
    holders: new ScopeHolders(ctx),
    invited: new Invited(ctx, people),
    keys,
    mailbox: new AccountMailbox(ctx, { realms }),
    model: new AccessModel(ctx),
    passwords: new Passwords(),
    people,
    realms,
    rotation: new KeyRotation(ctx, keys),
    sessions: new Sessions(ctx),
    settings: new SignInSettings(ctx, { realms }),
    templates: new AccessTemplates(ctx, realms),
    tokens: new TokenVerifier(ctx, keys),
    workloads: new Workloads(ctx),
  };
}
export type GroundParts = Awaited<ReturnType<typeof groundParts>>;
