import { useState } from 'react';
import type { Page } from '../../api/registry-api.ts';
import { type Loaded, useLoaded } from './use-loaded.ts';

/** A listing that grows by a page when asked; what is on screen stays while more is read. */
export function useMore<T>(
  key: string,
  load: (pages: number, signal: AbortSignal) => Promise<Page<T>>,
): Loaded<Page<T>> & { more(): void } {
  const [pages, setPages] = useState(1);
  const [shown, setShown] = useState<{ key: string; data: Page<T> }>();
  const loaded = useLoaded(`${key} ${pages}`, async signal => {
    const data = await load(pages, signal);
    setShown({ key, data });
    return data;
  });
  const before = shown?.key === key && !loaded.problem?.denied ? shown.data : undefined;
  return { ...loaded, data: loaded.data ?? before, more: () => setPages(count => count + 1) };
}
