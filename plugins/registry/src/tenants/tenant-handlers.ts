import type { tenantRoutes } from '../../contract/routes/tenant-routes.ts';
import type { upkeepRoutes } from '../../contract/routes/upkeep-routes.ts';
import type { Handlers } from '../context.ts';
import type { DeletionPreview } from './endings/deletion-preview.ts';
import type { Deletion } from './endings/deletion.ts';
import type { DomainProofs } from './domain-proofs.ts';
import type { EnvironmentStates } from './environment-state.ts';
import type { Envs } from './envs.ts';
import type { Orgs } from './orgs.ts';
import type { SlugAvailability } from './slug-availability.ts';
import type { Unfinished } from './endings/unfinished.ts';

interface Parts {
  readonly orgs: Orgs;
  readonly envs: Envs;
  readonly deletion: Deletion;
  readonly preview: DeletionPreview;
  readonly unfinished: Unfinished;
  readonly slugs: SlugAvailability;
  readonly states: EnvironmentStates;
  readonly orgDomains: DomainProofs;
}

/** Routes of organizations and environments to who answers them. */
export const tenantHandlers = ({
  orgs,
  envs,
  deletion,
  preview,
  unfinished,
  slugs,
  states,
  orgDomains,
}: Parts): Handlers<keyof typeof tenantRoutes | keyof typeof upkeepRoutes> => ({
  createOrg: request => orgs.create(request),
  listOrgs: request => orgs.list(request),
  getOrg: request => orgs.get(request),
  updateOrg: request => orgs.update(request),
  deleteOrg: request => deletion.org(request),
  archiveOrg: request => orgs.archive(request),
  previewOrgDeletion: request => preview.org(request),
  previewEnvDeletion: request => preview.env(request),
  listUnfinished: request => unfinished.list(request),
  retryUnfinished: request => unfinished.retry(request),
  createEnv: request => envs.create(request),
  listEnvs: request => envs.list(request),
  getEnv: request => envs.get(request),
  updateEnv: request => envs.update(request),
  deleteEnv: request => deletion.env(request),
  archiveEnv: request => envs.archive(request),
  listDomains: ({ params, caller }) => orgDomains.list(caller, params.id),
  verifyDomain: ({ params, caller, correlationId }) => orgDomains.verify(params.id, params.domain, { caller, correlationId }),
  domainRows: request => orgDomains.ofEnv(request),
  verifyDomainRow: request => orgDomains.verifyOfEnv(request),
  environmentState: request => states.read(request),
  slugAvailable: request => slugs.check(request),
});
