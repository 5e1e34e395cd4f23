import { defineContract, event, get, Id, Page, PageQuery, post, Type } from '@platform/sdk/contract';

const Pem = Type.String({ maxLength: 16_384 });
const ClientCertificate = Type.Object({
  certificate_id: Id,
  serial: Type.String(),
  cn: Type.String(),
  not_before: Type.String(),
  not_after: Type.String(),
  thumbprint: Type.String(),
  pem: Type.String(),
});
const CertificateRow = Type.Object({
  certificate_id: Id,
  serial: Type.String(),
  domain: Type.String(),
  kind: Type.Union([Type.Literal('leaf'), Type.Literal('client'), Type.Literal('ca')]),
  not_after: Type.String(),
  revoked: Type.Boolean(),
  revoked_at: Type.Union([Type.String(), Type.Null()]),
  reason: Type.Union([Type.String(), Type.Null()]),
  source: Type.Union([Type.Literal('local'), Type.Literal('upstream')]),
});
const anchor = 'Trust anchors are public';

/** The platform's certificate authority: two hierarchies, workload certificates, leafs for local names (doc3; G-ACME). */
export const certificateAuthority = defineContract({
  id: 'acme',
  title: 'Certificate authority',
  family: 'acme',
  placement: { tier: 2, singleton: true, outbox_poll_s: 5 },
  essential: true,
  capabilities: ['key-value', 'authority'],
  config: Type.Object({
    leafDays: Type.Integer({ env: 'PLATFORM_ACME_LEAF_DAYS', default: 90, minimum: 1, maximum: 825, description: 'Days a listener certificate is valid' }),
    localDomains: Type.String({ env: 'PLATFORM_ACME_LOCAL_DOMAINS', default: '', description: 'Comma-separated suffixes whose names the platform signs itself' }),
  }),

  actions: {
    'acme:admin': { title: 'See and revoke certificates' },
    'acme:clientcert:issue': { title: 'Issue client certificates for any workload', bound: true },
    'acme:certificates:fetch': { title: 'Fetch certificates for listeners', principals: ['machine'], bound: true },
  },
  problems: {
    invalid_service_name: { status: 400, title: 'Not a workload name', retry: 'never' },
    bad_csr: { status: 400, title: 'The CSR cannot be honoured', retry: 'never', type: 'urn:ietf:params:acme:error:badCSR' },
    enrollment_rejected: { status: 401, title: 'The enrollment secret is not valid for this workload', retry: 'never', log: 'warn' },
    credential_required: { status: 401, title: 'A workload identity or an enrollment secret is needed', retry: 'never' },
    subject_mismatch: { status: 403, title: 'The identity is not the workload named', retry: 'never' },
    name_not_owned: { status: 403, title: 'The name belongs to another service', retry: 'never' },
    name_not_local: { status: 404, title: 'The platform does not sign this name', retry: 'never' },
    certificate_not_found: { status: 404, title: 'No such certificate', retry: 'never' },
    mint_queue_full: { status: 503, title: 'Too many certificates are being made', retry: 'later', log: 'warn' },
  },
  events: {
    'platform:acme:clientcert:issued': event('A workload certificate was made', Type.Object({ certificate_id: Id, service_name: Type.String(), serial: Type.String(), not_after: Type.String() })),
    'platform:acme:certificate:revoked': event('A certificate was revoked', Type.Object({ certificate_id: Id, serial: Type.String(), domain: Type.String() })),
  },

  routes: {
    rootCertificate: get('/v1/ca/root.crt', { summary: 'Root certificates', gate: { public: anchor }, query: { alg: Type.Optional(Type.Union([Type.Literal('pq'), Type.Literal('classical')])) } }),
    intermediateCertificate: get('/v1/ca/intermediate.crt', {
      summary: 'Intermediate certificates',
      gate: { public: anchor },
      query: { alg: Type.Optional(Type.Union([Type.Literal('pq'), Type.Literal('classical')])) },
    }),
    issueClientCertificate: post('/v1/client-cert', {
      summary: 'Make a workload certificate',
      gate: { public: 'The mint admits by enrollment secret, own identity or operator scope, and checks each itself (doc3)' },
      body: Type.Object({ service_name: Type.String({ maxLength: 200 }), validity_days: Type.Optional(Type.Integer()), csr: Type.Optional(Pem) }),
      returns: ClientCertificate,
      status: 201,
      problems: ['invalid_service_name', 'bad_csr', 'enrollment_rejected', 'credential_required', 'subject_mismatch', 'mint_queue_full'],
      emits: ['platform:acme:clientcert:issued'],
    }),
    fetchCertificate: post('/v1/certificates/fetch', {
      summary: 'Certificate for a listener of the platform',
      gate: { public: 'Listeners enroll before they have an identity; the handler admits by secret or certificate' },
      body: Type.Object({ domain: Type.String({ maxLength: 253 }), domains: Type.Optional(Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20 })), csr: Pem }),
      returns: Type.Object({ certificate_id: Id, chain_pem: Type.String(), not_after: Type.String(), source: Type.Literal('local') }),
      problems: ['bad_csr', 'enrollment_rejected', 'credential_required', 'name_not_owned', 'name_not_local', 'mint_queue_full'],
    }),
    listCertificates: get('/v1/certificates', { summary: 'Certificates, newest first', gate: 'acme:admin', query: PageQuery, returns: Page(CertificateRow), hidden: true }),
    revokeCertificate: post('/v1/certificates/{certificate_id}/revoke', {
      summary: 'Revoke',
      gate: 'acme:admin',
      body: Type.Object({ reason: Type.Optional(Type.Integer({ minimum: 0, maximum: 10, title: 'Reason code' })) }),
      returns: CertificateRow,
      problems: ['certificate_not_found'],
      emits: ['platform:acme:certificate:revoked'],
      hidden: true,
    }),
  },
  jobs: {
    publishRevocations: { summary: 'Tell verifiers again which certificates are revoked (H-02)', every: '5s', runs: 'process' },
  },
  pages: {
    certificates: {
      kind: 'table',
      title: 'Certificates',
      scope: 'platform',
      source: 'listCertificates',
      key: 'certificate_id',
      rowActions: [
        {
          route: 'revokeCertificate',
          label: 'Revoke',
          confirm: 'Every service refuses this certificate within seconds. Revoke it?',
          tone: 'bad',
          body: { reason: 4 },
          when: { field: 'revoked', is: false },
        },
      ],
      live: ['platform:acme:clientcert:issued', 'platform:acme:certificate:revoked'],
      columns: [
        { field: 'domain', label: 'Name' },
        { field: 'kind', label: 'Kind', as: 'status', tones: { leaf: 'info', client: 'ok', ca: 'muted' } },
        { field: 'serial', label: 'Serial', as: 'code' },
        { field: 'not_after', label: 'Valid until', as: 'datetime' },
        { field: 'revoked', label: 'Revoked', as: 'bool' },
      ],
    },
  },
});
