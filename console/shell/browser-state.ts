import { useSyncExternalStore } from 'react';

function listen(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}

export function useHash(): string {
  return useSyncExternalStore(listen, () => location.hash);
}

export function useNarrow(): boolean {
  return useSyncExternalStore(
    changed => {
      NARROW.addEventListener('change', changed);
      return () => NARROW.removeEventListener('change', changed);
    },
    () => NARROW.matches,
  );
}

const NARROW = matchMedia('(max-width: 860px)');
