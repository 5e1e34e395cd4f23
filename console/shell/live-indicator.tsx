import type { LiveState } from '../api/live/live-channel.ts';

const WORDS: Record<LiveState, string> = {
  connecting: 'Connecting',
  connected: 'Live',
  reconnecting: 'Reconnecting',
  ended: 'Session ended',
};

export function LiveIndicator({ state }: { state: LiveState }) {
  return (
    <span
      className="live"
      data-state={state}
      role="status"
      aria-label={`Live updates: ${WORDS[state].toLowerCase()}`}
      title={`Live updates: ${WORDS[state].toLowerCase()}`}
    >
      <span className="dot" aria-hidden="true" />
      <span className="live-word" aria-hidden="true">
        {WORDS[state]}
      </span>
    </span>
  );
}
