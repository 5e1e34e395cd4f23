import type { directoryRoutes } from '../../contract/routes/directory-routes.ts';
import type { AccountRemoval } from '../account/account-removal.ts';
import type { Handlers } from '../context.ts';
import type { People } from '../people/people.ts';
import type { ScimService } from '../scim/scim-service.ts';
import type { OwnAudit } from './own-audit.ts';

interface Parts {
  readonly audit: OwnAudit;
  readonly people: People;
  readonly removal: AccountRemoval;
  readonly scim: ScimService;
}

/** Routes of the directory to who answers them. */
export const directoryHandlers = ({ audit, people, removal, scim }: Parts): Handlers<keyof typeof directoryRoutes> => ({
  scim: exchange => scim.handle(exchange),
  scimRoot: () => scim.root(),
  deleteUser: async request => removal.remove(await people.reachable(request), request.caller),
  listOwnAudit: request => audit.list(request),
});
