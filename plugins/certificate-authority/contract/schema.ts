import { Id, Type } from '@platform/sdk/contract';

export const Pem = Type.String({ maxLength: 16_384 });
export const Kind = Type.Union(
  [Type.Literal('leaf', { title: 'Server' }), Type.Literal('client', { title: 'Client' }), Type.Literal('ca', { title: 'Authority' })],
  { title: 'Kind' },
);
export const State = Type.Union(
  [Type.Literal('valid', { title: 'Valid' }), Type.Literal('revoked', { title: 'Revoked' }), Type.Literal('expired', { title: 'Expired' })],
  { title: 'State' },
);
export const Source = Type.Union([Type.Literal('local', { title: 'This authority' }), Type.Literal('upstream', { title: 'Upstream' })], {
  title: 'Signed by',
});
export const OrderStatus = Type.Union(
  [Type.Literal('pending'), Type.Literal('ready'), Type.Literal('processing'), Type.Literal('valid'), Type.Literal('invalid')],
  { title: 'Status' },
);
export const Classification = Type.Union([Type.Literal('local'), Type.Literal('external')], { title: 'Class' });
const Nullable = Type.Union([Type.String(), Type.Null()]);

export const ClientCertificate = Type.Object({
  certificate_id: Id,
  serial: Type.String(),
  cn: Type.String(),
  not_before: Type.String(),
  not_after: Type.String(),
  thumbprint: Type.String(),
  pem: Type.String(),
});

const row = {
  certificate_id: Id,
  serial: Type.String(),
  domain: Type.String(),
  names: Type.Array(Type.String()),
  kind: Kind,
  state: State,
  not_before: Type.String(),
  not_after: Type.String(),
  thumbprint: Type.String(),
  revoked: Type.Boolean(),
  revoked_at: Nullable,
  reason: Nullable,
  source: Source,
  /** How often it was shown to a service since it was revoked, and when last. */
  used_since: Type.Integer(),
  last_used_at: Nullable,
};
export const CertificateRow = Type.Object(row);
/** One certificate, with its chain. */
export const CertificateRecord = Type.Object({ ...row, account_id: Nullable, chain_pem: Type.String() });

/** RFC 5280, 5.3.1, in words. */
export const RevocationReason = Type.Object({
  reason: Type.Optional(
    Type.Integer({
      title: 'Reason',
      description:
        '0 unspecified, 1 its key is known to others, 3 the name changed hands, 4 another one took its place, 5 no longer in use',
      minimum: 0,
      maximum: 10,
      default: 0,
    }),
  ),
});

export const HierarchyRow = Type.Object({
  name: Type.String(),
  role: Type.String(),
  subject: Type.String(),
  algorithm: Type.String(),
  serial: Type.String(),
  not_after: Type.String(),
  thumbprint: Type.String(),
});

export const Figures = Type.Object(
  Object.fromEntries(
    (['certificates', 'valid', 'revoked', 'expiring', 'accounts', 'orders', 'in_flight', 'queued', 'minted', 'shed'] as const).map(name => [
      name,
      Type.Integer(),
    ]),
  ) as Record<
    'certificates' | 'valid' | 'revoked' | 'expiring' | 'accounts' | 'orders' | 'in_flight' | 'queued' | 'minted' | 'shed',
    ReturnType<typeof Type.Integer>
  >,
);

export const AccountRow = Type.Object({
  account_id: Id,
  status: Type.String(),
  contact: Type.String(),
  thumbprint: Type.String(),
  key: Type.String(),
  ip: Type.String(),
  created_at: Type.String(),
});

export const OrderRow = Type.Object({
  order_id: Id,
  account_id: Type.String(),
  domain: Type.String(),
  names: Type.Integer(),
  classification: Classification,
  status: OrderStatus,
  error: Nullable,
  created_at: Type.String(),
  expires: Type.String(),
  certificate_id: Nullable,
});

export const Verification = Type.Object({
  entries: Type.Integer(),
  certificates: Type.Integer(),
  head: Type.String(),
  key_id: Type.String(),
  intact: Type.Boolean(),
  faults: Type.Array(Type.Object({ kind: Type.String(), detail: Type.String() })),
});

export const Settings = Type.Object({
  local_domains: Type.String(),
  leaf_days: Type.Integer(),
  upstream: Type.String(),
  upstream_contact: Type.String(),
  queue: Type.String(),
  log_key: Type.String(),
  directory: Type.String(),
});
