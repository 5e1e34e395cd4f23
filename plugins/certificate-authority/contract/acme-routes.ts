import { raw } from '@platform/sdk/contract';
import { readAlone, replayNonce } from './idempotency.ts';

const JWS = 'Signed by the key of an ACME account (RFC 8555, 6.2), not by a token';
const OPEN = 'Public by RFC 8555: everybody who knows the address may look';
const acme = { errors: 'acme', limit: 131_072, within: '15s', bodyProblems: { tooLarge: 'request_too_large' } } as const;
const named = [
  'malformed_request',
  'bad_signature_algorithm',
  'bad_public_key',
  'bad_nonce',
  'url_mismatch',
  'not_authorized',
  'account_does_not_exist',
  'account_inactive',
  'not_jose',
  'wrong_method',
  'request_too_large',
  'server_internal',
] as const;

/** The doors of the protocol, all under `/acme` (CA-099, G-ACME-03). */
export const acmeRoutes = {
  acmeDirectory: raw('/acme/directory', {
    summary: 'ACME directory',
    idempotency: readAlone,
    gate: { public: OPEN },
    ...acme,
    problems: ['wrong_method'],
  }),
  acmeNonce: raw('/acme/new-nonce', {
    summary: 'A fresh nonce',
    idempotency: readAlone,
    gate: { public: OPEN },
    ...acme,
    problems: ['wrong_method'],
  }),
  acmeNewAccount: raw('/acme/new-account', {
    summary: 'Make or find the account of a key',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [...named, 'invalid_contact', 'unsupported_contact'],
    emits: ['platform:acme:account:created'],
  }),
  acmeAccount: raw('/acme/account/{id}', {
    summary: 'See, change or end an account',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [...named, 'invalid_contact', 'unsupported_contact'],
  }),
  acmeAccountOrders: raw('/acme/account/{id}/orders', {
    summary: 'Orders of an account',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: named,
  }),
  acmeKeyChange: raw('/acme/key-change', {
    summary: 'Change the key of an account',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [...named, 'key_in_use'],
  }),
  acmeNewOrder: raw('/acme/new-order', {
    summary: 'Order a certificate',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [
      ...named,
      'rejected_identifier',
      'unsupported_identifier',
      'already_replaced',
      'mint_queue_full',
      'upstream_refused',
      'upstream_failed',
    ],
    emits: ['platform:acme:order:created'],
  }),
  acmeOrder: raw('/acme/order/{id}', {
    summary: 'An order',
    idempotency: replayNonce,
    gate: { public: OPEN },
    ...acme,
    problems: [...named, 'order_not_found'],
  }),
  acmeFinalize: raw('/acme/order/{id}/finalize', {
    summary: 'Hand in the request of a ready order',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [
      ...named,
      'order_not_found',
      'order_not_ready',
      'bad_csr',
      'rejected_identifier',
      'mint_queue_full',
      'issuance_failed',
      'upstream_refused',
      'upstream_failed',
    ],
    emits: ['platform:acme:order:finalized'],
  }),
  acmeAuthorization: raw('/acme/authz/{id}', {
    summary: 'An authorization',
    idempotency: replayNonce,
    gate: { public: OPEN },
    ...acme,
    problems: [...named, 'order_not_found'],
  }),
  acmeChallenge: raw('/acme/challenge/{id}', {
    summary: 'Answer a challenge',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [...named, 'order_not_found', 'upstream_refused', 'upstream_failed'],
  }),
  acmeCertificate: raw('/acme/cert/{id}', {
    summary: 'A certificate with its chain',
    idempotency: replayNonce,
    gate: { public: OPEN },
    ...acme,
    problems: [...named, 'certificate_not_found'],
  }),
  acmeRevoke: raw('/acme/revoke-cert', {
    summary: 'Revoke by the account or the key of a certificate',
    idempotency: replayNonce,
    gate: { public: JWS },
    ...acme,
    problems: [...named, 'certificate_not_found', 'already_revoked', 'bad_revocation_reason'],
    emits: ['platform:acme:certificate:revoked'],
  }),
  acmeRenewalInfo: raw('/acme/renewal-info/{certid}', {
    summary: 'When to renew (RFC 9773)',
    idempotency: readAlone,
    gate: { public: OPEN },
    ...acme,
    problems: ['wrong_method', 'certificate_not_found'],
  }),
} as const;
