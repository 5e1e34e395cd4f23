import { del, get, Id, Page, PageQuery, post, put, SortQuery, Type } from '@platform/sdk/contract';
import { AppInstance, AppInstanceChange, Binding, CustomDomain, Fqdn, NewAppInstance, NewBinding } from '../schema/app.ts';

const ofEnv = { env_id: Id };
const ofEnvAppInstance = { env_id: Id, app_instance_id: Id };
const ofEnvBinding = { env_id: Id, binding_id: Id };
const ofAppInstance = { app_instance_id: Id };

const apps = '/v1/env/{env_id}/applications' as const;
const app = `${apps}/{app_instance_id}` as const;
const bindings = '/v1/env/{env_id}/bindings' as const;
const reachable = ['not_org_member', 'env_not_found'] as const;
const writable = [...reachable, 'env_suspended', 'org_suspended', 'record_archived'] as const;
const changeable = [...writable, 'app_instance_not_found', 'system_record_protected'] as const;
const settings = ['whitelist_invalid', 'auth_group_required', 'oauth_client_taken'] as const;

/** App instances, their custom domains and the bindings of an environment (G-SYS-08). */
export const appRoutes = {
  listApplications: get(apps, {
    params: ofEnv,
    summary: 'App instances of an environment',
    gate: 'sys:read',
    query: PageQuery,
    returns: Page(AppInstance),
    problems: [...reachable, 'invalid_cursor'],
  }),
  createApplication: post(apps, {
    params: ofEnv,
    summary: 'Create an app instance',
    gate: 'sys:app:admin',
    body: NewAppInstance,
    returns: AppInstance,
    status: 201,
    problems: [...writable, ...settings, 'slug_invalid', 'slug_reserved', 'slug_taken', 'hostname_taken'],
    emits: ['platform:sys:app:created'],
  }),
  getApplication: get(app, {
    params: ofEnvAppInstance,
    summary: 'One app instance',
    gate: 'sys:read',
    returns: AppInstance,
    problems: [...reachable, 'app_instance_not_found'],
  }),
  updateApplication: put(app, {
    params: ofEnvAppInstance,
    ifMatch: true,
    summary: 'Change an app instance',
    gate: 'sys:app:admin',
    body: AppInstanceChange,
    returns: AppInstance,
    problems: [...changeable, ...settings, 'immutable_field'],
    emits: ['platform:sys:app:updated'],
  }),
  deleteApplication: del(app, {
    params: ofEnvAppInstance,
    ifMatch: true,
    summary: 'Archive an app instance',
    gate: 'sys:app:admin',
    problems: changeable,
    emits: ['platform:sys:app:archived'],
  }),
  archiveApplication: post(`${app}/archive`, {
    params: ofEnvAppInstance,
    ifMatch: true,
    summary: 'Archive an app instance',
    gate: 'sys:app:admin',
    returns: AppInstance,
    problems: changeable,
    emits: ['platform:sys:app:archived'],
  }),
  getCustomDomain: get(`${app}/custom-domain`, {
    params: ofEnvAppInstance,
    summary: 'The custom domain of an app instance and the DNS records it needs',
    gate: 'sys:read',
    returns: CustomDomain,
    problems: [...reachable, 'app_instance_not_found', 'custom_domain_not_found'],
  }),
  putCustomDomain: put(`${app}/custom-domain`, {
    params: ofEnvAppInstance,
    summary: 'Ask for a custom domain; it takes effect when verified',
    gate: 'sys:app:admin',
    body: Type.Object({ fqdn: Fqdn }),
    returns: CustomDomain,
    problems: [...changeable, 'hostname_taken'],
    emits: ['platform:sys:app:updated'],
  }),
  challengeCustomDomain: put(`${app}/custom-domain/challenge`, {
    params: ofEnvAppInstance,
    summary: 'Ask for a custom domain with a challenge that the caller has given its owner',
    gate: 'sys:domains:challenge',
    body: Type.Object({
      fqdn: Fqdn,
      type: Type.Union([Type.Literal('TXT'), Type.Literal('CNAME')]),
      name: Type.String({ maxLength: 253 }),
      value: Type.String({ minLength: 16, maxLength: 253 }),
    }),
    returns: CustomDomain,
    problems: [...changeable, 'hostname_taken'],
    emits: ['platform:sys:app:updated'],
    hidden: true,
  }),
  deleteCustomDomain: del(`${app}/custom-domain`, {
    params: ofEnvAppInstance,
    summary: 'Give up a custom domain',
    gate: 'sys:app:admin',
    problems: [...changeable, 'custom_domain_not_found'],
    emits: ['platform:sys:app:updated'],
  }),
  verifyCustomDomain: post(`${app}/custom-domain/verify`, {
    params: ofEnvAppInstance,
    summary: 'Look for the DNS records of a custom domain',
    gate: 'sys:app:admin',
    returns: CustomDomain,
    problems: [...changeable, 'custom_domain_not_found', 'domain_not_verified', 'hostname_taken'],
    emits: ['platform:sys:app:updated'],
  }),

  listBindings: get(bindings, {
    params: ofEnv,
    summary: 'Apps bound to an environment',
    gate: 'sys:read',
    query: PageQuery,
    returns: Page(Binding),
    problems: [...reachable, 'invalid_cursor'],
  }),
  createBinding: post(bindings, {
    params: ofEnv,
    summary: 'Bind an app to an environment',
    gate: 'sys:app:admin',
    body: NewBinding,
    returns: Binding,
    status: 201,
    problems: [...writable, 'slug_invalid', 'slug_reserved', 'slug_taken', 'app_instance_not_found'],
    emits: ['platform:sys:binding:created'],
  }),
  getBinding: get(`${bindings}/{binding_id}`, {
    params: ofEnvBinding,
    summary: 'One binding',
    gate: 'sys:read',
    returns: Binding,
    problems: [...reachable, 'binding_not_found'],
  }),
  updateBinding: put(`${bindings}/{binding_id}`, {
    params: ofEnvBinding,
    summary: 'Bind under another slug: the binding is made anew',
    gate: 'sys:app:admin',
    body: Type.Object({ slug: Type.String({ maxLength: 64 }) }),
    returns: Binding,
    problems: [...writable, 'binding_not_found', 'slug_invalid', 'slug_reserved', 'slug_taken'],
    emits: ['platform:sys:binding:deleted', 'platform:sys:binding:created'],
  }),
  deleteBinding: del(`${bindings}/{binding_id}`, {
    params: ofEnvBinding,
    summary: 'Unbind an app',
    gate: 'sys:app:admin',
    problems: [...writable, 'binding_not_found'],
    emits: ['platform:sys:binding:deleted'],
  }),

  // What the applications page reads and does: its environment is the target, because a page path carries one id only (G-K-18).
  applicationRows: get('/v1/admin/applications', {
    summary: 'App instances of the target environment',
    gate: 'sys:read',
    query: { ...SortQuery('name', 'slug'), ...PageQuery },
    env: 'target',
    returns: Page(AppInstance),
    problems: [...reachable, 'invalid_cursor'],
    hidden: true,
  }),
  verifyApplicationRow: post('/v1/admin/applications/{app_instance_id}/verify', {
    params: ofAppInstance,
    summary: 'Verify the custom domain',
    gate: 'sys:app:admin',
    env: 'target',
    returns: CustomDomain,
    problems: [...changeable, 'custom_domain_not_found', 'domain_not_verified', 'hostname_taken'],
    emits: ['platform:sys:app:updated'],
    hidden: true,
  }),
  archiveApplicationRow: post('/v1/admin/applications/{app_instance_id}/archive', {
    params: ofAppInstance,
    ifMatch: true,
    summary: 'Archive',
    gate: 'sys:app:admin',
    env: 'target',
    returns: AppInstance,
    problems: changeable,
    emits: ['platform:sys:app:archived'],
    hidden: true,
  }),
};
