import { del, get, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { Application, IssuedApplication, NewApplication } from '../schema/application.ts';

const ofClient = { client_id: Type.String({ maxLength: 300 }) };

const gated = { gate: 'auth:clients:write', env: 'own' } as const;
const reach = ['realm_not_found', 'vertical_elsewhere'] as const;
const one = [...reach, 'client_not_found'] as const;

/** Applications that people of an environment sign in to, as its administrators and its verticals manage them (F-33). */
export const applicationRoutes = {
  listClients: get('/v1/clients', {
    ...gated,
    summary: 'Applications of an environment',
    query: PageQuery,
    returns: Page(Application),
    problems: [...reach, 'invalid_cursor'],
  }),
  getClient: get('/v1/clients/{client_id}', {
    params: ofClient,
    ...gated,
    summary: 'One application',
    returns: Application,
    problems: one,
  }),
  createClient: post('/v1/clients', {
    ...gated,
    summary: 'Register an application',
    idempotency: 'secret',
    body: NewApplication,
    limit: 65_536,
    returns: IssuedApplication,
    status: 201,
    problems: [...reach, 'client_metadata_invalid'],
    emits: ['platform:auth:client:created'],
  }),
  updateClient: put('/v1/clients/{client_id}', {
    params: ofClient,
    ...gated,
    summary: 'Change an application',
    body: NewApplication,
    limit: 65_536,
    returns: IssuedApplication,
    problems: [...one, 'client_metadata_invalid'],
    emits: ['platform:auth:client:updated'],
  }),
  rotateClientSecret: post('/v1/clients/{client_id}/secret', {
    params: ofClient,
    ...gated,
    summary: 'Give an application another secret; the one before is worth nothing from now on',
    idempotency: 'secret',
    returns: Type.Object({ client_id: Type.String(), client_secret: Type.String() }),
    problems: [...one, 'client_without_secret'],
    emits: ['platform:auth:client:updated'],
  }),
  removeClient: del('/v1/clients/{client_id}', {
    params: ofClient,
    ...gated,
    summary: 'Delete an application with everything it was granted',
    problems: one,
    emits: ['platform:auth:client:deleted'],
  }),
};
