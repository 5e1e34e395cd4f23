import { get, Page, PageQuery } from '@platform/sdk/contract';
import { Member } from '../schema/member.ts';

/** Members of an organization (G-SYS-06). */
export const memberRoutes = {
  listMemberships: get('/v1/org/{org_id}/memberships', {
    summary: 'Members of an organization',
    gate: 'sys:read',
    query: PageQuery,
    returns: Page(Member),
    problems: ['not_org_member', 'org_not_found', 'identity_unavailable'],
  }),
};
