import type { Tone } from '../../api/page-def.ts';
import { Value } from './value.tsx';

const TONES: Record<string, Tone> = {
  active: 'ok',
  up: 'ok',
  success: 'ok',
  suspended: 'warn',
  denied: 'warn',
  archived: 'muted',
  down: 'bad',
  error: 'bad',
};

export function StatusBadge({ status }: { status: string }) {
  return <Value value={status} format="badge" tones={TONES} />;
}
