import type { consentRoutes } from '../../contract/routes/consent-routes.ts';
import type { Handlers } from '../context.ts';
import type { AccountSelection } from './account-selection.ts';
import type { CibaApproval } from './ciba-approval.ts';
import type { Consents } from './consents.ts';
import type { DeviceApproval } from './device-approval.ts';
import type { OwnConsents } from './own-consents.ts';

interface Parts {
  readonly ciba: CibaApproval;
  readonly consents: Consents;
  readonly device: DeviceApproval;
  readonly ownConsents: OwnConsents;
  readonly selection: AccountSelection;
}
type Names = keyof typeof consentRoutes | 'consent' | 'consentAccounts' | 'device' | 'decideDevice' | 'ciba' | 'decideCiba';

/** Routes of what people agree to for applications, devices and calls to who answers them. */
export const approvalHandlers = ({ ciba, consents, device, ownConsents, selection }: Parts): Handlers<Names> => ({
  consent: request => consents.describe(request),
  consentAccounts: request => selection.accounts(request),
  ownConsents: request => ownConsents.list(request),
  withdrawConsent: request => ownConsents.withdraw(request),
  device: request => device.show(request),
  decideDevice: request => device.decide(request),
  ciba: request => ciba.show(request),
  decideCiba: request => ciba.decide(request),
});
