import type { InstanceRow } from '../instances/instance-row.ts';

type Named = Pick<InstanceRow, 'slug' | 'manifest'>;

/** Names at the identity service: below the slug, which no other instance of the environment has. */
export const roleName = ({ slug }: Pick<Named, 'slug'>, role: string): string => `app:${slug}:${role}`;
/** Who may sign in to the application at all. */
export const usersGroup = ({ slug }: Pick<Named, 'slug'>): string => `app:${slug}:users`;
/** Who has a role of it. */
export const roleGroup = ({ slug }: Pick<Named, 'slug'>, role: string): string => `app:${slug}:${role}:members`;

export const rolesOf = (instance: Named): string[] => instance.manifest.roles.map(({ name }) => roleName(instance, name));
export const groupsOf = (instance: Named): string[] => [
  usersGroup(instance),
  ...instance.manifest.roles.map(({ name }) => roleGroup(instance, name)),
];
