import { useCallback, useEffect, useRef, useState } from 'react';
import { Problem } from '../../api/gateway/problem.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly problem: Problem | undefined;
  readonly loading: boolean;
  reload(): void;
}

/** Told when the live channel is there again: what was read before may be old, or was not to be had. */
export const RECONNECTED = 'console:reconnected';

/** Loads when `key` changes, forgetting what was there; a reload keeps it on screen until the new answer is in. */
export function useLoaded<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState<{ key: string; data?: T; problem?: Problem; loading: boolean }>({ key, loading: true });
  const loader = useRef(load);
  loader.current = load;

  useEffect(() => {
    const aborted = new AbortController();
    setState(before => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    loader.current(aborted.signal).then(
      data => !aborted.signal.aborted && setState({ key, data, loading: false }),
      error => {
        if (aborted.signal.aborted) return;
        const problem = Problem.of(error);
        // A gateway that is away for a moment does not empty the screen; a refusal does.
        const away = problem.status === 0 || problem.status >= 500;
        setState(({ key: was, data }) => ({
          key,
          problem,
          loading: false,
          ...(was === key && away && data !== undefined ? { data } : {}),
        }));
      },
    );
    return () => aborted.abort();
  }, [key, turn]);

  const reload = useCallback(() => setTurn(before => before + 1), []);
  useEffect(() => {
    addEventListener(RECONNECTED, reload);
    return () => removeEventListener(RECONNECTED, reload);
  }, [reload]);
  const current = state.key === key ? state : { data: undefined, problem: undefined, loading: true };
  return { data: current.data, problem: current.problem, loading: current.loading, reload };
}
