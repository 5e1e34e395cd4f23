/** Pages that the first screen does not need, in one bundle of their own. */
export { AuditPage } from './audit-page.tsx';
export { BrandingPage } from './tenants/branding-page.tsx';
export { EnvCreatePage } from './tenants/env-create-page.tsx';
export { InvitationPage } from './invitation-page.tsx';
export { MembersPage } from './tenants/members-page.tsx';
export { OrgCreatePage } from './tenants/org-create-page.tsx';
export { ServicePage } from './service-page.tsx';
export { SettingsPage } from './tenants/settings-page.tsx';
