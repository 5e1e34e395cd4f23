import { useMemo, useRef, useState } from 'react';
import { Problem } from '../../api/gateway/problem.ts';
import type { Source } from '../../api/page-def.ts';
import { useConsole } from '../../shell/console-context.ts';
import { usePageHost } from '../page/page-host.ts';
import { itemsOf, nextCursorOf } from '../page/source-items.ts';
import { useSource } from '../page/use-source.ts';

const PAGE = 50;

/** By which column, and which way: as the source is asked. */
export interface Sorting {
  readonly sort: string;
  readonly order: 'asc' | 'desc';
}

/** The rows of a table under its filter: the first page, kept fresh, and what was loaded behind it. */
export function useTablePage(source: Source) {
  const host = usePageHost();
  const { notify } = useConsole();
  const [filter, setFilter] = useState<Record<string, string>>({});
  const [sort, setSort] = useState<Sorting>();
  const [added, setAdded] = useState<{ to: unknown; rows: readonly unknown[]; cursor: string | undefined }>();
  const [busy, setBusy] = useState(false);
  const fresh = useSource(source, { ...filter, ...sort, ...(source.paged ? { limit: PAGE } : {}) });

  // While other rows are sorted the table stays, with its heads: the keyboard keeps its place.
  const of = JSON.stringify([source, filter, host.params]);
  const last = useRef<{ of: string; data: unknown }>(undefined);
  if (fresh.data !== undefined) last.current = { of, data: fresh.data };
  const stays = fresh.data === undefined && !fresh.problem && last.current?.of === of;
  const loaded = stays ? { ...fresh, data: last.current?.data } : fresh;

  const more = added?.to === loaded.data ? added : undefined;
  const rows = useMemo(() => [...itemsOf(loaded.data, source), ...(more?.rows ?? [])], [loaded.data, more, source]);
  const cursor = source.paged ? (more ? more.cursor : nextCursorOf(loaded.data)) : undefined;

  const loadMore = async () => {
    setBusy(true);
    try {
      const answer = await host.read(source, { ...filter, ...sort, limit: PAGE, cursor });
      setAdded({ to: loaded.data, rows: [...(more?.rows ?? []), ...itemsOf(answer, source)], cursor: nextCursorOf(answer) });
    } catch (error) {
      notify(Problem.of(error).message, 'bad');
    } finally {
      setBusy(false);
    }
  };
  return {
    loaded,
    rows,
    filter,
    setFilter,
    sort,
    setSort,
    foot: { count: rows.length, noun: 'row', more: cursor !== undefined, busy, onMore: loadMore },
  };
}
