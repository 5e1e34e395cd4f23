/** Pictures of the navigation: a closed set, each of which the console draws. */
export const ICONS = [
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

export type IconName = (typeof ICONS)[number];
