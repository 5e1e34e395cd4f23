import type { PageIcon } from '../api/page-icons.ts';

/** What a page may be marked with: the closed set of the wire, whole. */
const PAGE_PATHS: Readonly<Record<PageIcon, string>> = {
  alert: 'M12 8v5m0 3.5v.01M10.3 3.9 2.5 17.5A2 2 0 0 0 4.2 20.5h15.6a2 2 0 0 0 1.7-3L13.7 3.9a2 2 0 0 0-3.4 0Z',
  bell: 'M6 16.500V11a6 6 0 0 1 12 0v5.500l1.500 2h-15zM10 21h4',
  bolt: 'M13 2.500 4.500 13.500H11l-1 8 8.500-11H12z',
  box: 'm3.5 7.5 8.5-4.5 8.5 4.5v9L12 21l-8.5-4.5zM3.5 7.5 12 12l8.5-4.5M12 12v9',
  building: 'M5 21V5a2 2 0 0 1 2-2h7a2 2 0 0 1 2 2v16M16 10h2a2 2 0 0 1 2 2v9M3 21h18M9 7.5h3M9 11.5h3M9 15.5h3',
  chart: 'M4 4v15a1 1 0 0 0 1 1h15M8 15l3.5-4 3 2.5L19.5 8',
  check: 'm5 12.5 4.5 4.5L19 7.5',
  clock: 'M12 7.5V12l3 2m6-2a9 9 0 1 1-18 0 9 9 0 0 1 18 0Z',
  gear: 'M12 15.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4ZM12 3v2.5M12 18.5V21M3 12h2.5M18.5 12H21M5.6 5.6l1.8 1.8M16.6 16.6l1.8 1.8M18.4 5.6l-1.8 1.8M7.4 16.6l-1.8 1.8',
  globe:
    'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM3 12h18M12 3c2.500 2.700 3.800 5.700 3.800 9S14.500 18.300 12 21c-2.500-2.700-3.800-5.700-3.800-9S9.500 5.700 12 3Z',
  grid: 'M4 4h6.5v6.5H4zM13.5 4H20v6.5h-6.5zM4 13.5h6.5V20H4zM13.5 13.5H20V20h-6.5z',
  key: 'M14.5 9.5a4.5 4.5 0 1 1-2.8 4L4 21m0 0v-3.5h3V15h2.5M15.5 8.5v.01',
  layers: 'm12 3.5 9 4.7-9 4.7-9-4.7zM3 12.5l9 4.7 9-4.7M3 16.5l9 4.7 9-4.7',
  list: 'M9 6h11M9 12h11M9 18h11M4.5 6v.01M4.5 12v.01M4.5 18v.01',
  lock: 'M6 11h12a1 1 0 0 1 1 1v8a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1v-8a1 1 0 0 1 1-1ZM8 11V8a4 4 0 0 1 8 0v3',
  mail: 'M4 5.500h16a1 1 0 0 1 1 1v11a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-11a1 1 0 0 1 1-1ZM3.500 7 12 13l8.500-6',
  palette:
    'M12 3a9 9 0 1 0 0 18c1.4 0 2-.9 2-1.9 0-1.6-1.2-1.8-1.2-3.2 0-1 .8-1.7 1.9-1.7h2.3c2.2 0 4-1.7 4-4.2C21 6 17 3 12 3ZM7.5 12.5v.01M9 8v.01M14 7v.01',
  refresh: 'M20 11a8 8 0 0 0-14.5-3.5L4 9.5M4 5v4.5h4.5M4 13a8 8 0 0 0 14.5 3.5l1.5-2M20 19v-4.5h-4.5',
  scroll: 'M7 3h10a2 2 0 0 1 2 2v14a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2ZM9 8h6M9 12h6M9 16h3.5',
  search: 'm20 20-4.5-4.5M17.5 10.750a6.750 6.750 0 1 1-13.5 0 6.750 6.750 0 0 1 13.5 0Z',
  server:
    'M5 4h14a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V5a1 1 0 0 1 1-1ZM5 13h14a1 1 0 0 1 1 1v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1v-5a1 1 0 0 1 1-1ZM7.500 7.500v.01M7.500 16.500v.01',
  shield: 'M12 3.5 5 6v5.5c0 4.3 2.9 7.6 7 9 4.1-1.4 7-4.7 7-9V6z',
  tag: 'M12.500 3.500H20.500V11.500L11.500 20.500 3.500 12.500zM16.500 7.500v.01',
  users:
    'M9.5 11.5a3.750 3.750 0 1 0 0-7.5 3.750 3.750 0 0 0 0 7.5ZM3 20c0-3.3 2.7-5.5 6.5-5.5S16 16.7 16 20M16 4.3a3.750 3.750 0 0 1 0 6.9M18 14.9c1.9.8 3 2.6 3 5.1',
};
/** What only the console itself shows. */
const OWN_PATHS = {
  close: 'M6 6l12 12M18 6 6 18',
  copy: 'M9 9h9a2 2 0 0 1 2 2v7a2 2 0 0 1-2 2h-7a2 2 0 0 1-2-2zM5.5 15A1.5 1.5 0 0 1 4 13.5V6a2 2 0 0 1 2-2h7.5A1.5 1.5 0 0 1 15 5.5',
  menu: 'M4 6.5h16M4 12h16M4 17.5h16',
  moon: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5Z',
  more: 'M5.5 12v.01M12 12v.01M18.5 12v.01',
  plus: 'M12 5v14M5 12h14',
  sidebar: 'M5 4.5h14a1.5 1.5 0 0 1 1.5 1.5v12a1.5 1.5 0 0 1-1.5 1.5H5A1.5 1.5 0 0 1 3.5 18V6A1.5 1.5 0 0 1 5 4.5ZM9.5 4.5v15',
  sun: 'M12 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4M18.7 5.3l-1.4 1.4M6.7 17.3l-1.4 1.4',
  updown: 'm8 9.5 4-4 4 4M8 14.5l4 4 4-4',
} as const;
const PATHS = { ...PAGE_PATHS, ...OWN_PATHS };

export type IconName = keyof typeof PATHS;

export function isIconName(name: string): name is IconName {
  return Object.hasOwn(PATHS, name);
}

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      className="glyph"
      viewBox="0 0 24 24"
      width="18"
      height="18"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.7"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

/** Two letters where there is no picture. */
export function monogram(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const letters = words.length > 1 ? `${words[0]?.[0] ?? ''}${words[1]?.[0] ?? ''}` : (words[0] ?? name).slice(0, 2);
  return letters.charAt(0).toUpperCase() + letters.slice(1);
}
