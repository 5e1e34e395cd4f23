/** Pages that the first screen does not need, in one bundle of their own. */
export { AuditPage } from './audit-page.tsx';
export { BrandingPage } from './branding-page.tsx';
export { EnvCreatePage } from './env-create-page.tsx';
export { InvitationPage } from './invitation-page.tsx';
export { MembersPage } from './members-page.tsx';
export { OrgCreatePage } from './org-create-page.tsx';
export { ServicePage } from './service-page.tsx';
export { SettingsPage } from './settings-page.tsx';
