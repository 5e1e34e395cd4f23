import type { Tone } from '../api/page-def.ts';

const TONES: Record<string, Tone> = { active: 'ok', up: 'ok', success: 'ok', suspended: 'warn', denied: 'warn', archived: 'muted', down: 'bad', error: 'bad' };

export function StatusBadge({ status }: { status: string }) {
  return (
    <span className="badge" data-tone={TONES[status] ?? 'muted'}>
      {status}
    </span>
  );
}
