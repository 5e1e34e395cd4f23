/** What a page may be marked with. Written by scripts/golden.ts from the SDK. */
export const PAGE_ICONS = [
  'alert',
  'bell',
  'bolt',
  'box',
  'building',
  'chart',
  'check',
  'clock',
  'gear',
  'globe',
  'grid',
  'key',
  'layers',
  'list',
  'lock',
  'mail',
  'palette',
  'refresh',
  'scroll',
  'search',
  'server',
  'shield',
  'tag',
  'users',
] as const;

export type PageIcon = (typeof PAGE_ICONS)[number];
