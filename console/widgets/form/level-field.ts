import type { Level } from '../../api/members-api.ts';
import type { Field } from '../../api/page-def.ts';

const LEVELS: readonly { readonly value: Level; readonly label: string; readonly may: string }[] = [
  { value: 'admin', label: 'Administrator', may: 'environments, services, members' },
  { value: 'viewer', label: 'Viewer', may: 'sees, changes nothing' },
  { value: 'owner', label: 'Owner', may: 'everything, and who else is an owner' },
];

/** A level of an organization in one word. */
export const levelName = (level: Level): string => LEVELS.find(({ value }) => value === level)?.label ?? level;

/** The choice of a level, for somebody who has `own`: only owners make owners. */
export const levelField = (own: Level, label = 'Level'): Field => ({
  name: 'access',
  label,
  type: 'select',
  required: true,
  options: LEVELS.filter(({ value }) => own === 'owner' || value !== 'owner').map(({ value, label: name, may }) => ({
    value,
    label: `${name} – ${may}`,
  })),
});
