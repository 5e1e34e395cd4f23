import type { applicationRoutes } from '../../contract/routes/application-routes.ts';
import type { Handlers } from '../context.ts';
import type { Applications } from './applications.ts';
import type { ClientRegistration } from './client-registration.ts';

interface Parts {
  readonly applications: Applications;
  readonly registration: ClientRegistration;
}
type Names = keyof typeof applicationRoutes | 'registerClient' | 'deleteClient' | 'deleteClientsOf';

/** Routes of applications, and of what services register for theirs, to who answers them. */
export const clientHandlers = ({ applications, registration }: Parts): Handlers<Names> => ({
  listClients: request => applications.list(request),
  getClient: request => applications.get(request),
  createClient: request => applications.create(request),
  updateClient: request => applications.update(request),
  rotateClientSecret: request => applications.rotateSecret(request),
  removeClient: request => applications.remove(request),
  registerClient: request => registration.register(request),
  deleteClient: request => registration.delete(request),
  deleteClientsOf: request => registration.deleteOf(request),
});
