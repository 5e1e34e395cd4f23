import type { Level } from '../tenants/access.ts';

const NAMES: readonly (readonly [Level, string])[] = [
  ['owner', 'owners'],
  ['admin', 'admins'],
  ['viewer', 'viewers'],
];

/** Group of an organization that proves a level (G-SYS-03); all are in the system realm. */
export const groupOf = (orgId: string, level: Level): string =>
  `platform:org:${orgId}:${NAMES.find(([other]) => other === level)?.[1] as string}`;

/** All three, the highest level first. */
export const groupsOf = (orgId: string): readonly string[] => NAMES.map(([level]) => groupOf(orgId, level));

/** The highest level that some of an organization's groups prove. */
export const highestOf = (orgId: string, groups: readonly string[]): Level | undefined =>
  NAMES.find(([level]) => groups.includes(groupOf(orgId, level)))?.[0];
