/**
 * What the kernel itself asks of services, by service and operation. It imports no contract (the import law), so these are written here as
 * well; the tests of `@platform/contracts` hold each to the contract of its service.
 */
export const ASKED_ROUTES = {
  acme: {
    issueClientCertificate: { method: 'POST', path: '/v1/client-cert' },
    fetchCertificate: { method: 'POST', path: '/v1/certificates/fetch' },
  },
  auth: {
    userScopes: { method: 'GET', path: '/v1/admin/users/{user_id}/scopes' },
    getWorkload: { method: 'GET', path: '/v1/admin/workloads/{name}' },
    putWorkload: { method: 'PUT', path: '/v1/admin/workloads/{name}' },
    issuerOn: { method: 'GET', path: '/v1/admin/issuers/{host}' },
  },
  sys: {
    policySnapshot: { method: 'GET', path: '/v1/internal/policy' },
    policyUpsertSet: { method: 'POST', path: '/v1/internal/policy/sets' },
    policyUpsertRelation: { method: 'POST', path: '/v1/internal/policy/relations' },
    policyUpsertAttribute: { method: 'POST', path: '/v1/internal/policy/attributes' },
    policyPutAttributes: { method: 'PUT', path: '/v1/internal/policy/attributes' },
    policyRemove: { method: 'POST', path: '/v1/internal/policy/remove' },
    environmentState: { method: 'GET', path: '/v1/internal/environments/{env_id}/state' },
    listLives: { method: 'GET', path: '/v1/verticals/lives' },
    listVerticals: { method: 'GET', path: '/v1/verticals/services' },
    findVertical: { method: 'PUT', path: '/v1/verticals/lives/{service}' },
    registerVertical: { method: 'POST', path: '/v1/verticals/register' },
    recordAudits: { method: 'POST', path: '/v1/audit/batch' },
  },
  bus: {
    produceBatch: { method: 'POST', path: '/v1/produce/batch' },
    consume: { method: 'POST', path: '/v1/consume' },
    closeGroup: { method: 'POST', path: '/v1/consume/close' },
    ack: { method: 'POST', path: '/v1/ack' },
    nack: { method: 'POST', path: '/v1/nack' },
    extend: { method: 'POST', path: '/v1/extend' },
    keepEventContract: { method: 'PUT', path: '/v1/event-contracts/{service}' },
  },
} as const;
