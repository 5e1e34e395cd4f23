import type { NavEntry, ServiceEntry } from '../../api/registry-api.ts';

export interface NavGroup {
  readonly title: string;
  readonly entries: readonly NavEntry[];
}

/** Pages of a service under the headings they stand under: its own first, then each group where its first page stands. */
export function navGroups({ label, nav }: Pick<ServiceEntry, 'label' | 'nav'>): readonly NavGroup[] {
  const sorted = nav.toSorted((a, b) => (a.order ?? 100) - (b.order ?? 100));
  const titles = [...new Set([undefined, ...sorted.map(({ group }) => group)])];
  return titles
    .map(title => ({ title: title ?? label, entries: sorted.filter(({ group }) => group === title) }))
    .filter(({ entries }) => entries.length > 0);
}
