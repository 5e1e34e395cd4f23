import type { recoveryRoutes } from '../../contract/routes/recovery-routes.ts';
import type { OwnAccount } from '../account/own-account.ts';
import type { AccountRequests } from '../account/account-requests.ts';
import type { Handlers } from '../context.ts';
import type { AccountRecovery } from './account-recovery.ts';
import type { RecoveryDecisions } from './recovery-decisions.ts';

interface Parts {
  readonly account: OwnAccount;
  readonly decisions: RecoveryDecisions;
  readonly recovery: AccountRecovery;
  readonly requests: AccountRequests;
}

/** Routes of account recovery to who answers them. */
export const recoveryHandlers = ({ account, decisions, recovery, requests }: Parts): Handlers<keyof typeof recoveryRoutes> => ({
  requestRecovery: request => recovery.ask(requests, request),
  confirmRecovery: request => recovery.confirm(request),
  cancelRecovery: request => recovery.cancel(request),
  finishRecovery: request => recovery.finish(request),
  endOwnRecovery: request => account.endRecovery(request),
  listRecoveries: request => decisions.list(request),
  approveRecovery: request => decisions.approve(request),
  refuseRecovery: request => decisions.refuse(request),
});
