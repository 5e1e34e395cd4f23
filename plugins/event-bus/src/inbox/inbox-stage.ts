const UNREACHED = new Set([
  'ECONNREFUSED',
  'CONNECT_TIMEOUT',
  'POOL_BUSY',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
  '53300',
  '57P03',
  'CONNECTION_ENDED',
]);

/**
 * How far a commit came (BUS-082). Before a connection: `pool`; lost on the way, so that nobody knows: `inbox commit`; refused: `inbox
 * persist`.
 */
export type InboxStage = 'pool' | 'inbox commit' | 'inbox persist';

export function stageOf(error: unknown): InboxStage {
  const { code = '' } = error as { code?: string };
  if (UNREACHED.has(code)) return 'pool';
  return /^(CONNECTION_|ECONN|EPIPE|ETIMEDOUT|08|57P)/.test(code) ? 'inbox commit' : 'inbox persist';
}
