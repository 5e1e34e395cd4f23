import { raw } from '@platform/sdk/contract';
import { comesToTheSame, readAlone } from '../idempotency.ts';

const cookie = 'The session cookie is checked by the gateway itself, before anything else';

/** Of what is passed on to a service (GWY-099). */
export const PROXY_BYTES = 10_485_760;

/** Actions of operators, acting for customers, the directory of an environment (G-BFF-06, G-BFF-07). */
export const delegationRoutes = {
  action: raw('/bff/action/{action}', {
    summary: 'Call what a service registered as an action',
    idempotency: 'own',
    gate: { public: cookie },
  }),
  delegateStart: raw('/delegate/start', {
    summary: 'Ask a customer to be acted for',
    idempotency: 'kernel',
    gate: { public: cookie },
    limit: 16_384,
  }),
  delegatePoll: raw('/delegate/poll', {
    summary: 'Ask whether the customer has decided',
    idempotency: comesToTheSame,
    gate: { public: cookie },
    limit: 16_384,
  }),
  delegateStatus: raw('/delegate/status', { summary: 'State of a delegation', idempotency: readAlone, gate: { public: cookie } }),
  delegateSendLink: raw('/delegate/send-link', {
    summary: 'Note that the customer is to get the link',
    idempotency: comesToTheSame,
    gate: { public: cookie },
    limit: 16_384,
  }),
  scimUsers: raw('/delegate/scim/users', {
    summary: 'People of an environment: list or create',
    idempotency: 'own',
    gate: { public: cookie },
    limit: PROXY_BYTES,
  }),
  scimUser: raw('/delegate/scim/users/{id}', {
    summary: 'One person of an environment: read, replace, change or delete',
    idempotency: 'own',
    gate: { public: cookie },
    limit: PROXY_BYTES,
  }),
};
