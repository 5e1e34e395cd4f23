import { useCallback, useState } from 'react';
import type { Tone } from '../api/page-def.ts';

interface Toast {
  readonly id: string;
  readonly text: string;
  readonly tone: Tone;
}

export function Toasts({ toasts }: { toasts: readonly Toast[] }) {
  return (
    <div className="toasts" role="status" aria-live="polite">
      {toasts.map(({ id, text, tone }) => (
        <p key={id} className="toast" data-tone={tone}>
          {text}
        </p>
      ))}
    </div>
  );
}

const SHOWN_MS = 6_000;

/** The latest four short messages, and how to say another. */
export function useToasts() {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const notify = useCallback((text: string, tone: Tone = 'ok') => {
    const toast = { id: crypto.randomUUID(), text, tone };
    setToasts(all => [...all.slice(-3), toast]);
    setTimeout(() => setToasts(all => all.filter(({ id }) => id !== toast.id)), SHOWN_MS);
  }, []);
  return { toasts, notify };
}
