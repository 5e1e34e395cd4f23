/** Fixed ids of a fresh platform (G-SYS-04). */
export const SYSTEM = {
  orgId: '00000000-0000-7000-8000-000000000001',
  envId: '00000000-0000-7000-8000-000000000002',
  consoleAppId: '00000000-0000-7000-8000-000000000003',
  consoleGroupId: '00000000-0000-7000-8000-000000000004',
  /** A person who is in it, directly or through a tenant's group, may enter the console. */
  consoleGroup: 'platform:console:users',
  consoleRoleId: '00000000-0000-7000-8000-000000000005',
  bootstrapMembershipId: '00000000-0000-7000-8000-000000000006',
  bootstrapUserId: '00000000-0000-7000-8000-000000000007',
  orgSlug: 'sys',
  envSlug: 'ops',
} as const;
