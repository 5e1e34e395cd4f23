import { get, Id, put } from '@platform/sdk/contract';
import { Branding, MergedBranding } from '../schema/branding.ts';

const ofId = { id: Id };

/** Branding (G-SYS-09). */
export const brandingRoutes = {
  orgBranding: get('/v1/org/{id}/branding', {
    params: ofId,
    summary: 'Branding of an organization',
    gate: 'sys:read',
    returns: Branding,
    problems: ['not_org_member', 'org_not_found'],
  }),
  putOrgBranding: put('/v1/org/{id}/branding', {
    params: ofId,
    summary: 'Replace the branding of an organization',
    gate: 'sys:org:admin',
    body: Branding,
    returns: Branding,
    problems: ['not_org_member', 'org_not_found', 'org_suspended', 'record_archived'],
  }),
  envBranding: get('/v1/env/{id}/branding', {
    params: ofId,
    summary: 'Branding of an environment',
    gate: 'sys:read',
    returns: Branding,
    problems: ['not_org_member', 'env_not_found'],
  }),
  putEnvBranding: put('/v1/env/{id}/branding', {
    params: ofId,
    summary: 'Replace the branding of an environment',
    gate: 'sys:env:admin',
    body: Branding,
    returns: Branding,
    problems: ['not_org_member', 'env_not_found', 'env_suspended', 'org_suspended', 'record_archived'],
  }),
  mergedBranding: get('/v1/env/{id}/branding/merged', {
    params: ofId,
    summary: 'Branding as it looks',
    gate: 'sys:read',
    returns: MergedBranding,
    problems: ['not_org_member', 'env_not_found'],
  }),
};
