import type { Tone } from '../api/page-def.ts';

export interface Toast {
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
