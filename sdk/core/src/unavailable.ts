const CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'EAI_AGAIN',
  'ENOTFOUND',
  'CONNECT_TIMEOUT',
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'POOL_BUSY',
  '57P01',
  '57P02',
  '57P03',
  '53300',
  '25P03',
]);
const KEY_VALUE_MESSAGES =
  /^(Connection is closed|Stream isn't writeable|Command timed out|Blocking command timed out|LOADING |MASTERDOWN |CLUSTERDOWN |TRYAGAIN |READONLY |Too many Cluster redirections)/;

/** True for an error that says the store could not be reached, and nothing about the request: the same call may succeed later. */
export function isUnavailable(error: unknown): boolean {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    const { code, syscall } = at as NodeJS.ErrnoException;
    if (code !== undefined && (CODES.has(code) || /^08...$/.test(code) || (code === 'ENOENT' && syscall === 'connect'))) return true;
    if (at.name === 'MaxRetriesPerRequestError' || KEY_VALUE_MESSAGES.test(at.message)) return true;
    if (at instanceof AggregateError && at.errors.length > 0 && at.errors.every(isUnavailable)) return true;
  }
  return false;
}
