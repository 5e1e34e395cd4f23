import { type ProblemError, problemBody } from './contract/problem.ts';

/** Refusals of APIs whose standard fixes another body than RFC 9457 (G-K-01). A route declares its own as `errors`. */
export type ErrorForm = 'oauth' | 'scim' | 'acme';

interface Form {
  readonly type: string;
  readonly schema: object;
  readonly body: (problem: ProblemError) => object;
}

const text = { type: 'string' };
const object = (required: readonly string[], properties: object): object => ({ type: 'object', required, properties });

const SCIM_ERROR = 'urn:ietf:params:scim:api:messages:2.0:Error';
const ACME_ERROR = 'urn:ietf:params:acme:error:';
const ACME_ERRORS: Readonly<Record<number, string>> = { 401: 'unauthorized', 403: 'unauthorized', 429: 'rateLimited', 503: 'rateLimited' };
const OAUTH_ERRORS: Readonly<Record<number, string>> = {
  401: 'invalid_client',
  403: 'access_denied',
  429: 'temporarily_unavailable',
  503: 'temporarily_unavailable',
};

/** What each standard fixes: media type, members, and how a problem fills them. */
export const ERROR_FORMS: Readonly<Record<ErrorForm, Form>> = {
  /** RFC 6749, 5.2. */
  oauth: {
    type: 'application/json; charset=utf-8',
    schema: object(['error'], { error: text, error_description: text }),
    body: ({ status, title, detail, extra }) => ({
      error: extra['error'] ?? OAUTH_ERRORS[status] ?? (status < 500 ? 'invalid_request' : 'server_error'),
      error_description: detail ?? title,
    }),
  },
  /** RFC 7644, 3.12. */
  scim: {
    type: 'application/scim+json; charset=utf-8',
    schema: object(['schemas', 'status'], { schemas: { type: 'array', items: text }, status: text, scimType: text, detail: text }),
    body: ({ status, title, detail, extra: { scimType = status === 400 ? 'invalidValue' : undefined } }) => ({
      schemas: [SCIM_ERROR],
      status: String(status),
      ...(scimType ? { scimType } : {}),
      detail: detail ?? title,
    }),
  },
  /** RFC 8555, 6.7: problems whose types are those of ACME. */
  acme: {
    type: 'application/problem+json',
    schema: object(['type', 'status', 'detail'], { type: text, title: text, status: { type: 'integer' }, code: text, detail: text }),
    body: ({ status, type, title, code, detail, extra }) => ({
      type: type.startsWith(ACME_ERROR) ? type : ACME_ERROR + (ACME_ERRORS[status] ?? (status < 500 ? 'malformed' : 'serverInternal')),
      title,
      status,
      code,
      detail: detail ?? title,
      ...extra,
    }),
  },
};

/** The body of a refusal and its media type, in the form of the route that refuses. */
export function errorBody(
  problem: ProblemError,
  { form, correlationId, requestId }: { form?: ErrorForm | undefined; correlationId?: string; requestId?: string } = {},
): { type: string; body: object } {
  if (!form) return { type: 'application/problem+json; charset=utf-8', body: problemBody(problem, correlationId, requestId) };
  return { type: ERROR_FORMS[form].type, body: ERROR_FORMS[form].body(problem) };
}
