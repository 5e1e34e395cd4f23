import type { ProblemDecl } from '@platform/sdk/contract';

export const problems = {
  key_invalid: { status: 400, title: 'The key cannot be stored', retry: 'never' },
  key_denied: { status: 403, title: 'The key belongs to another service', retry: 'never' },
  method_refused: { status: 405, title: 'Objects take GET, HEAD, PUT and DELETE', retry: 'never' },
  object_not_found: { status: 404, title: 'No such object', retry: 'never' },
  precondition_failed: { status: 412, title: 'The object is not what the request names', retry: 'never' },
  range_unsatisfiable: { status: 416, title: 'The object has no such bytes', retry: 'never' },
  object_too_large: { status: 413, title: 'The object is too large', retry: 'never' },
  sha256_mismatch: { status: 400, title: 'The bytes are not those that the request names', retry: 'never' },
  length_mismatch: { status: 400, title: 'Fewer or more bytes came than the request named', retry: 'never' },
  upload_timeout: { status: 408, title: 'The bytes came too slowly', retry: 'later' },
  too_many_transfers: { status: 503, title: 'Too many objects are on their way', retry: 'later' },
  storage_full: { status: 507, title: 'There is no room left', retry: 'later', log: 'error' },
  bytes_unreachable: { status: 502, title: 'The bytes cannot be reached', retry: 'later' },
} as const satisfies Readonly<Record<string, ProblemDecl>>;
