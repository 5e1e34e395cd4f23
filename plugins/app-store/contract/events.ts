import { event, Id, Type } from '@platform/sdk/contract';

const OfListing = Type.Object({ listing_id: Id, app_slug: Type.String(), channel: Type.String(), version: Type.String() });
const OfInstance = Type.Object({ instance_id: Id, listing_id: Id, env_id: Id });
const OfDomain = Type.Object({ binding_id: Id, instance_id: Id, fqdn: Type.String() });

/** G-APP-07. */
export const events = {
  'platform:app:listing:created': event('A listing was made', OfListing),
  'platform:app:listing:updated': event('A listing changed', OfListing),
  'platform:app:listing:published': event('A listing can be installed', OfListing),
  'platform:app:listing:deleted': event('A listing is gone', OfListing),
  'platform:app:instance:created': event('Somebody installs an application', OfInstance),
  'platform:app:instance:activated': event('An application is installed', OfInstance),
  'platform:app:instance:updated': event('An installed application changed', OfInstance),
  'platform:app:instance:failed': event('An application was not installed', OfInstance),
  'platform:app:instance:deleted': event('An application was uninstalled', OfInstance),
  'platform:app:domain:bound': event('An application asks for a domain', OfDomain),
  'platform:app:domain:verified': event('A domain was proven', OfDomain),
  'platform:app:domain:failed': event('A domain was not proven in time', OfDomain),
  'platform:app:domain:removed': event('An application gave a domain up', OfDomain),
};
