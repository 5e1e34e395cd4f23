import { event, Id, Type } from '@platform/sdk/contract';
import { Audit } from './schema/audit.ts';
import { PolicyChange } from './schema/policy.ts';
import { TenantSnapshot } from './schema/tenant.ts';
import { VerticalStep } from './schema/vertical-life.ts';

const orgIds = Type.Object({ org_id: Id });
const appIds = Type.Object({ env_id: Id, app_instance_id: Id, app_id: Type.String() });
const bindingIds = Type.Object({ env_id: Id, binding_id: Id, app_id: Type.String() });
const envIds = Type.Object({ env_id: Id, org_id: Id });
const invitationIds = Type.Object({ org_id: Id, invitation_id: Id });

/** What changes where a person can go in the console. */
const everyPage = { everyPage: true } as const;

/** Everything the registry says on the bus (doc1, Events; G-SYS-16). */
export const events = {
  'platform:sys:org:created': event('An organization exists', TenantSnapshot, everyPage),
  'platform:sys:org:updated': event('An organization changed', TenantSnapshot, everyPage),
  'platform:sys:org:archived': event('An organization was archived', orgIds, everyPage),
  'platform:sys:org:deleted': event('An organization is gone', orgIds),
  'platform:sys:env:created': event('An environment exists', TenantSnapshot, everyPage),
  'platform:sys:env:updated': event('An environment changed', TenantSnapshot, everyPage),
  'platform:sys:env:archived': event('An environment was archived', envIds, everyPage),
  'platform:sys:env:deleted': event('An environment is gone', envIds),
  'platform:sys:membership:removed': event('A member left an organization', Type.Object({ org_id: Id, user_id: Type.String() }), everyPage),
  'platform:sys:invitation:sent': event('Somebody was invited', invitationIds, everyPage),
  'platform:sys:invitation:revoked': event('An invitation was withdrawn', invitationIds, everyPage),
  'platform:sys:invitation:accepted': event('Somebody joined by invitation', invitationIds, everyPage),
  'platform:sys:app:created': event('An app instance exists', appIds),
  'platform:sys:app:updated': event('An app instance changed', appIds),
  'platform:sys:app:archived': event('An app instance was archived', appIds),
  'platform:sys:binding:created': event('An app was bound to an environment', bindingIds),
  'platform:sys:binding:deleted': event('An app was unbound from an environment', bindingIds),
  'platform:sys:service:updated': event(
    'A service was enabled or disabled',
    Type.Object({ env_id: Id, service: Type.String() }),
    everyPage,
  ),
  'platform:sys:vertical:registered': event(
    'A vertical registered its services',
    Type.Object({ vertical: Type.String(), version: Type.String() }),
    everyPage,
  ),
  'platform:sys:vertical:changed': event('A service of a vertical is known, enabled, draining or gone', VerticalStep, everyPage),
  'platform:sys:audit:recorded': event('An audit event was stored', Audit, { family: 'audit' }),
  'platform:sys:identity:updated': event('Access changed', Type.Object({ env_id: Id, subject_ids: Type.Array(Type.String()) }), {
    family: 'policy',
  }),
  'platform:sys:policy:updated': event('A policy set, relations or attributes changed', PolicyChange, { family: 'policy' }),
};
