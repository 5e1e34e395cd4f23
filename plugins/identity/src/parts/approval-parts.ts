import { CibaApproval } from '../approvals/ciba-approval.ts';
import { DeviceApproval } from '../approvals/device-approval.ts';
import { OwnConsents } from '../approvals/own-consents.ts';
import type { Ctx } from '../context.ts';
import type { Made } from './page-parts.ts';

/** What a person agrees to at a page: devices, calls, and what was agreed to before. */
export function approvalParts(ctx: Ctx, made: Made) {
  const { browser, clients, consents, people, protocol, realms, registered, selection, sessions, shared, visits } = made;
  const { attempts, guard } = shared;
  return {
    ciba: new CibaApproval(ctx, { browser, clients, consents, guard, people, protocol, realms }),
    consents,
    device: new DeviceApproval(ctx, { attempts, browser, clients, consents, guard, protocol, realms }),
    ownConsents: new OwnConsents(ctx, { clients: registered, sessions, visits }),
    selection,
  };
}
