import { useEffect, useRef } from 'react';
import type { Query } from '../../api/gateway/gateway-client.ts';
import type { Source } from '../../api/page-def.ts';
import { type Loaded, useLoaded } from '../../shell/loading/use-loaded.ts';
import { usePageHost } from './page-host.ts';

/** The data of a section; it is read again, without leaving the screen, when the page turns. */
export function useSource(source: Source, more: Query = {}): Loaded<unknown> {
  const host = usePageHost();
  const key = JSON.stringify([source, more, host.params]);
  const loaded = useLoaded(key, signal => host.read(source, more, signal));
  const seen = useRef(host.turn);
  const { reload } = loaded;
  useEffect(() => {
    if (seen.current === host.turn) return;
    seen.current = host.turn;
    reload();
  }, [host.turn, reload]);
  return loaded;
}
