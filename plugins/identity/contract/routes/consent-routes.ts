import { get, post, Type } from '@platform/sdk/contract';
import { OwnConsent } from '../schema/consent.ts';
import { comesToTheSame } from '../idempotency.ts';

const own = { public: 'The sign-in session of the browser is the credential; the handler asks for it' } as const;

/** What a person allowed applications, and takes back at the own account (RFC 9700 2.3; the consent page promises it). */
export const consentRoutes = {
  ownConsents: get('/v1/account/consents', {
    summary: 'Applications that act for one',
    gate: own,
    returns: Type.Object({ items: Type.Array(OwnConsent) }),
    problems: ['realm_not_found', 'session_required'],
  }),
  withdrawConsent: post('/v1/account/consents/{client_id}/withdraw', {
    params: { client_id: Type.String({ maxLength: 300 }) },
    summary: 'Let an application act for one no more; what it was given is void',
    idempotency: comesToTheSame,
    gate: own,
    problems: ['realm_not_found', 'session_required', 'csrf_mismatch', 'bad_origin', 'consent_not_found'],
  }),
};
