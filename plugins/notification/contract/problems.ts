import type { ProblemDecl } from '@platform/sdk/contract';

const never = (status: number, title: string): ProblemDecl => ({ status, title, retry: 'never' });
export const problems = {
  category_unsupported: { status: 500, title: 'No such category of messages', retry: 'never', log: 'error' },
  m2m_required: never(403, 'Only workloads send messages'),
  content_required: never(400, 'The message says nothing'),
  recipient_invalid: never(400, 'Nobody can be reached like that'),
  rate_limited: { status: 429, title: 'Too many messages at once', retry: 'later' },
  message_not_found: never(404, 'No such message'),
  admin_required: never(403, 'This needs the action post:admin in the environment'),
  gateway_not_found: never(404, 'No such gateway'),
  literal_credential: never(400, 'A credential is a reference, never the secret itself'),
  credential_reserved: never(403, 'Only administrators of the platform may use this reference'),
  gateway_url_invalid: never(400, 'A gateway cannot have this address'),
  gateway_invalid: never(400, 'The gateway is not described well enough'),
  platform_admin_required: never(403, 'This needs an administrator of the platform'),
  org_unknown: { status: 503, title: 'The organization could not be looked up', retry: 'later' },
  dead_letter_not_found: never(404, 'No such dead letter'),
  template_not_found: never(404, 'No such template'),
  template_invalid: never(400, 'The template cannot be read'),
  timezone_unknown: never(400, 'No such time zone'),
  suppression_not_found: never(404, 'No such suppression'),
  mail_not_found: never(404, 'No such mail'),
} as const satisfies Readonly<Record<string, ProblemDecl>>;
