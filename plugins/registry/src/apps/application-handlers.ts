import type { appRoutes } from '../../contract/routes/app-routes.ts';
import type { Handlers } from '../context.ts';
import type { AppInstances } from './app-instances.ts';
import type { Bindings } from './bindings.ts';
import type { CustomDomains } from './custom-domains.ts';

/** Routes of applications to who answers them. */
export const applicationHandlers = ({
  apps,
  domains,
  bindings,
}: {
  apps: AppInstances;
  domains: CustomDomains;
  bindings: Bindings;
}): Handlers<keyof typeof appRoutes> => ({
  listApplications: request => apps.list(request, request.params.env_id),
  createApplication: request => apps.create(request),
  getApplication: request => apps.get(request),
  updateApplication: request => apps.update(request),
  deleteApplication: async request => void (await apps.archive(request.params, request)),
  archiveApplication: request => apps.archive(request.params, request),
  getCustomDomain: request => domains.get(request),
  putCustomDomain: request => domains.put(request),
  challengeCustomDomain: request => domains.challenge(request),
  deleteCustomDomain: request => domains.delete(request),
  verifyCustomDomain: request => domains.verify(request.params, request),
  listBindings: request => bindings.list(request),
  createBinding: request => bindings.create(request),
  getBinding: request => bindings.get(request),
  updateBinding: request => bindings.update(request),
  deleteBinding: request => bindings.delete(request),
  applicationRows: request => apps.list(request, request.env),
  verifyApplicationRow: request => domains.verify({ env_id: request.env, ...request.params }, request),
  archiveApplicationRow: request => apps.archive({ env_id: request.env, ...request.params }, request),
});
