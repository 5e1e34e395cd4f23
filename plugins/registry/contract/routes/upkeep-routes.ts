import { get, Id, Page, PageQuery, post, Type } from '@platform/sdk/contract';
import { DeletionPreview, Unfinished } from '../schema/upkeep.ts';

const ofId = { id: Id };

/** What a delete would take along, and what has not come to its end (H-32). */
export const upkeepRoutes = {
  previewOrgDeletion: get('/v1/org/{id}/deletion', {
    params: ofId,
    summary: 'What deleting an organization would take along',
    gate: 'sys:org:admin',
    returns: DeletionPreview,
    problems: ['not_org_member', 'org_not_found', 'identity_unavailable'],
    hidden: true,
  }),
  previewEnvDeletion: get('/v1/env/{env_id}/deletion', {
    params: { env_id: Id },
    summary: 'What deleting an environment would take along',
    gate: 'sys:env:admin',
    returns: DeletionPreview,
    problems: ['not_org_member', 'env_not_found', 'identity_unavailable'],
    hidden: true,
  }),
  listUnfinished: get('/v1/unfinished', {
    summary: 'Creates and clean-ups that have not ended, and why',
    gate: 'sys:sys:admin',
    query: PageQuery,
    returns: Page(Unfinished),
    hidden: true,
  }),
  retryUnfinished: post('/v1/unfinished/{id}/retry', {
    params: ofId,
    summary: 'Try again now',
    gate: 'sys:sys:admin',
    returns: Type.Object({ done: Type.Boolean() }),
    problems: ['nothing_unfinished'],
    hidden: true,
  }),
};
