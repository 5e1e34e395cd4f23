import { defineContract, event, get, Id, Page, PageQuery, post, raw, Type } from '@platform/sdk/contract';
import { acmeRoutes } from './acme-routes.ts';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import {
  AccountRow,
  CertificateRow,
  CertificateRecord,
  Classification,
  ClientCertificate,
  Figures,
  HierarchyRow,
  Kind,
  OrderRow,
  OrderStatus,
  Pem,
  RevocationReason,
  Settings,
  Source,
  State,
  Verification,
} from './schema.ts';
import { readAlone } from './idempotency.ts';

const ofCertificate = { certificate_id: Id };

const anchor = 'Trust anchors are public';
const Alg = { alg: Type.Optional(Type.Union([Type.Literal('pq'), Type.Literal('classical')])) };
const Search = { q: Type.Optional(Type.String({ maxLength: 253, title: 'Search' })) };

/** The platform's certificate authority: two hierarchies, workload certificates, ACME for local and external names (doc3; G-ACME). */
export const certificateAuthority = defineContract({
  id: 'acme',
  title: 'Certificate authority',
  family: 'acme',
  placement: { tier: 2, singleton: true, outbox_poll_s: 5 },
  unversioned: {
    '/acme/': 'RFC 8555',
    '/.well-known/': 'RFC 8615',
  },
  forApplications: false,
  essential: true,
  capabilities: ['key-value', 'authority'],
  folders: ['accounts', 'certificates', 'issued', 'orders'],
  config: Type.Object({
    leafDays: Type.Integer({
      env: 'PLATFORM_ACME_LEAF_DAYS',
      default: 90,
      minimum: 1,
      maximum: 825,
      description: 'Days a listener certificate is valid',
    }),
    localDomains: Type.String({
      env: 'PLATFORM_ACME_LOCAL_DOMAINS',
      default: '',
      description: 'Comma-separated suffixes whose names the platform signs itself',
    }),
    upstreamDirectoryUrl: Type.String({
      env: 'PLATFORM_ACME_UPSTREAM_DIRECTORY_URL',
      default: '',
      pattern: '^(https://.{1,2000})?$',
      description: 'ACME directory of the public authority that signs external names; none are signed when it is empty',
    }),
    upstreamContact: Type.String({
      env: 'PLATFORM_ACME_UPSTREAM_CONTACT',
      default: '',
      maxLength: 254,
      description: 'E-mail address of the account there',
    }),
    upstreamCaPem: Type.String({
      env: 'PLATFORM_ACME_UPSTREAM_CA_PEM',
      default: '',
      description: 'More roots to trust there than the system’s: PEM, or the path of a file',
    }),
  }),
  keys: {
    log: {
      use: 'seeds',
      description: 'Secret reference of the 32 bytes (base64) that sign the log of issued certificates; a last line more is the next key',
      documented: 'PLATFORM_ACME_LOG_KEY_REF',
      file: 'acme-log.key',
    },
  },

  actions: {
    'acme:admin': { title: 'See and revoke certificates' },
    'acme:clientcert:issue': { title: 'Issue client certificates for any workload', bound: true },
    'acme:certificates:fetch': { title: 'Fetch certificates for listeners', principals: ['machine'], bound: true },
  },
  problems,
  events: {
    'platform:acme:account:created': event('An ACME account was made', Type.Object({ account_id: Id })),
    'platform:acme:order:created': event(
      'A certificate was ordered',
      Type.Object({ order_id: Id, account_id: Type.String(), classification: Classification, domain: Type.String() }),
    ),
    'platform:acme:order:finalized': event(
      'An order got its certificate',
      Type.Object({ order_id: Id, certificate_id: Id, serial: Type.String(), domain: Type.String(), not_after: Type.String() }),
    ),
    'platform:acme:clientcert:issued': event(
      'A workload certificate was made',
      Type.Object({ certificate_id: Id, service_name: Type.String(), serial: Type.String(), not_after: Type.String() }),
    ),
    'platform:acme:certificate:revoked': event(
      'A certificate was revoked',
      Type.Object({ certificate_id: Id, serial: Type.String(), domain: Type.String() }),
    ),
  },

  routes: {
    ...acmeRoutes,
    challengeAnswer: raw('/.well-known/acme-challenge/{token}', {
      summary: 'What an upstream authority fetches over port 80',
      idempotency: readAlone,
      gate: { public: 'Unauthenticated by design: HTTP-01 (doc3, certificate authority 6)' },
    }),
    rootCertificate: get('/v1/ca/root.crt', { summary: 'Root certificates', gate: { public: anchor }, query: Alg }),
    intermediateCertificate: get('/v1/ca/intermediate.crt', { summary: 'Intermediate certificates', gate: { public: anchor }, query: Alg }),
    issueClientCertificate: post('/v1/client-cert', {
      summary: 'Make a workload certificate',
      idempotency: 'secret',
      gate: { public: 'Admits by enrollment secret, own identity or operator scope; the handler decides which' },
      body: Type.Object({
        service_name: Type.String({ maxLength: 200 }),
        validity_days: Type.Optional(Type.Integer()),
        csr: Type.Optional(Pem),
      }),
      returns: ClientCertificate,
      status: 201,
      problems: [
        'invalid_service_name',
        'bad_csr',
        'enrollment_rejected',
        'credential_required',
        'subject_mismatch',
        'mint_queue_full',
        'issuance_failed',
      ],
      emits: ['platform:acme:clientcert:issued'],
    }),
    fetchCertificate: post('/v1/certificates/fetch', {
      summary: 'Certificate for a listener of the platform',
      gate: { public: 'Admits the workload that its certificate names; the handler asks whose names they are' },
      body: Type.Object({
        domain: Type.String({ maxLength: 253 }),
        domains: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20 })),
        csr: Type.Optional(Pem),
      }),
      returns: Type.Object({
        certificate_id: Id,
        chain_pem: Type.String(),
        key_pem: Type.Optional(Type.String()),
        not_after: Type.String(),
        source: Source,
      }),
      problems: ['bad_csr', 'credential_required', 'name_not_owned', 'name_not_local', 'mint_queue_full', 'issuance_failed'],
      idempotency: 'secret',
    }),
    listCertificates: get('/v1/admin/certificates', {
      summary: 'Certificates, newest first',
      gate: 'acme:admin',
      query: { ...PageQuery, ...Search, kind: Type.Optional(Kind), state: Type.Optional(State), source: Type.Optional(Source) },
      returns: Page(CertificateRow),
    }),
    downloadCertificate: get('/v1/admin/certificates/{certificate_id}/chain.pem', {
      params: ofCertificate,
      summary: 'A certificate with its chain, as a file',
      gate: 'acme:admin',
      problems: ['certificate_not_found'],
    }),
    getCertificate: get('/v1/admin/certificates/{certificate_id}', {
      params: ofCertificate,
      summary: 'A certificate',
      gate: 'acme:admin',
      returns: CertificateRecord,
      problems: ['certificate_not_found'],
    }),
    revokeCertificate: post('/v1/admin/certificates/{certificate_id}/revoke', {
      params: ofCertificate,
      summary: 'Revoke',
      gate: 'acme:admin',
      body: RevocationReason,
      returns: CertificateRow,
      problems: ['certificate_not_found'],
      emits: ['platform:acme:certificate:revoked'],
    }),
    verifyLog: get('/v1/admin/log/verification', {
      summary: 'Prove the log of issued certificates',
      gate: 'acme:admin',
      returns: Verification,
    }),
    listAccounts: get('/v1/admin/accounts', {
      summary: 'ACME accounts, newest first',
      gate: 'acme:admin',
      query: PageQuery,
      returns: Page(AccountRow),
    }),
    listOrders: get('/v1/admin/orders', {
      summary: 'ACME orders, newest first',
      gate: 'acme:admin',
      query: { ...PageQuery, ...Search, status: Type.Optional(OrderStatus), classification: Type.Optional(Classification) },
      returns: Page(OrderRow),
    }),
    listHierarchies: get('/v1/admin/hierarchies', {
      summary: 'Certificates of the authority itself',
      gate: 'acme:admin',
      returns: Type.Object({ items: Type.Array(HierarchyRow) }),
    }),
    authorityFigures: get('/v1/admin/figures', { summary: 'What is there and under way', gate: 'acme:admin', returns: Figures }),
    authorityMinutes: get('/v1/admin/minutes', {
      summary: 'Mints and sheds of the last hour',
      gate: 'acme:admin',
      returns: Type.Object({ items: Type.Array(Type.Object({ minute: Type.String(), minted: Type.Integer(), shed: Type.Integer() })) }),
    }),
    authoritySettings: get('/v1/admin/settings', { summary: 'Settings in force', gate: 'acme:admin', returns: Settings }),
  },
  jobs: {
    publishRevocations: {
      summary: 'Tell verifiers again which certificates are revoked (H-02), and log what the kernel signed by itself',
      every: '5s',
      runs: 'process',
    },
    forgetOrders: { summary: 'Forget orders that were made 90 days ago', every: '1h', runs: 'process' },
  },
  pages,
});
