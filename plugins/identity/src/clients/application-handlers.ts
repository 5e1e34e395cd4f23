import type { Contract } from '../context.ts';
import type { Applications } from './applications.ts';
import type { RequestOf } from '@platform/sdk';

/** What administrators and verticals do with applications. */
export const applicationHandlers = (applications: Applications) => ({
  listClients: (request: RequestOf<Contract, 'listClients'>) => applications.list(request),
  getClient: (request: RequestOf<Contract, 'getClient'>) => applications.get(request),
  createClient: (request: RequestOf<Contract, 'createClient'>) => applications.create(request),
  updateClient: (request: RequestOf<Contract, 'updateClient'>) => applications.update(request),
  rotateClientSecret: (request: RequestOf<Contract, 'rotateClientSecret'>) => applications.rotateSecret(request),
  removeClient: (request: RequestOf<Contract, 'removeClient'>) => applications.remove(request),
});
