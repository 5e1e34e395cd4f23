import { useCallback, useEffect, useRef, useState } from 'react';
import { Reading, type Shown } from './reading.ts';

export interface Loaded<T> extends Shown<T> {
  reload(): void;
}

/** Told when something may have happened that nobody here heard of: what was read before may be old, or was not to be had. */
export const READ_AGAIN = 'console:read-again';

/** Loads when `key` changes, forgetting what was there; a reload keeps it on screen until the new answer is in. */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ key: string; shown: Shown<T> }>();
  const loader = useRef(load);
  loader.current = load;
  const reading = useRef<Reading<T>>(undefined);

  useEffect(() => {
    const current = new Reading<T>({
      load: signal => loader.current(signal),
      show: shown => setState({ key, shown }),
    });
    reading.current = current;
    const readAgain = () => current.read();
    addEventListener(READ_AGAIN, readAgain);
    current.read();
    return () => {
      removeEventListener(READ_AGAIN, readAgain);
      current[Symbol.dispose]();
    };
  }, [key]);

  const reload = useCallback(() => reading.current?.read(), []);
  const shown = state?.key === key ? state.shown : { data: undefined, problem: undefined, loading: true };
  return { ...shown, reload };
}
