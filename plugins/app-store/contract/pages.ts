import type { PageDecl } from '@platform/sdk/contract';
import { events } from './events.ts';

const listings = { draft: 'info', published: 'ok', deprecated: 'warn', archived: 'muted' } as const;
const instances = {
  onboarding: 'info',
  provisioning: 'info',
  active: 'ok',
  suspended: 'warn',
  rejected: 'bad',
  failed: 'bad',
  uninstalling: 'warn',
  uninstalled: 'muted',
} as const;
const domains = { pending: 'info', verified: 'info', active: 'ok', failed: 'bad', removed: 'muted' } as const;
/** A page is read again with every event of what it shows. */
const eventsOf = (...resources: readonly ('listing' | 'instance' | 'domain')[]) =>
  Object.keys(events).filter(name => resources.some(resource => name.startsWith(`platform:app:${resource}:`)));
const status = (tones: Readonly<Record<string, 'ok' | 'warn' | 'bad' | 'info' | 'muted'>>) =>
  ({ field: 'status', label: 'Status', as: 'status', tones }) as const;
const when = (is: string) => ({ field: 'status', is }) as const;
const release = [
  { field: 'app_slug', label: 'Application', as: 'code' },
  { field: 'channel', label: 'Channel' },
  { field: 'version', label: 'Version' },
] as const;
const publish = {
  route: 'publishListing',
  label: 'Publish',
  tone: 'ok',
  confirm: 'Offer {name} {version} for installing?',
  when: when('draft'),
} as const;
const deprecate = {
  route: 'deprecateListing',
  label: 'Deprecate',
  tone: 'warn',
  confirm: '{name} {version} is installed only where somebody asks for this very version.',
  when: when('published'),
} as const;
const archive = (is: string) =>
  ({
    route: 'archiveListing',
    label: 'Archive',
    tone: 'bad',
    confirm: 'Install {name} {version} no more?',
    when: when(is),
  }) as const;

export const pages = {
  overview: {
    kind: 'board',
    icon: 'grid',
    title: 'Overview',
    description: 'Listings and installed applications of this environment',
    nav: 1,
    refresh: 30,
    live: eventsOf('listing', 'instance'),
    sections: [
      {
        kind: 'stats',
        source: 'figures',
        items: [
          { field: 'instances', label: 'Installed', as: 'number', history: 'value', link: { page: 'instances' } },
          { field: 'waiting', label: 'Being installed', as: 'number' },
          { field: 'listings', label: 'Listings', as: 'number', link: { page: 'listings' } },
          { field: 'published', label: 'Published', as: 'number' },
        ],
      },
      {
        title: 'Installs by application',
        kind: 'chart',
        chart: 'bar',
        source: 'figures',
        x: 'app',
        series: [{ field: 'installs', label: 'Installs' }],
      },
    ],
  },
  listings: {
    kind: 'table',
    icon: 'box',
    title: 'Store',
    description: 'Applications that can be installed here, and drafts of this environment',
    nav: 2,
    source: 'listingRows',
    key: 'listing_id',
    open: 'listing',
    search: 'q',
    filters: ['category', 'channel'],
    sort: ['name', 'app_slug'],
    create: 'createListing',
    live: eventsOf('listing'),
    empty: 'Nothing is listed yet. A listing says what an application is called, where it runs and which roles it brings.',
    rowActions: [publish, deprecate],
    columns: [
      { field: 'name', label: 'Name' },
      ...release,
      status(listings),
      { field: 'visibility', label: 'Seen by', as: 'status' },
      { field: 'published_at', label: 'Published', as: 'ago' },
    ],
  },
  listing: {
    kind: 'record',
    title: 'Listing',
    nav: false,
    source: 'listingRow',
    heading: '{name} {version}',
    live: eventsOf('listing'),
    fields: [
      status(listings),
      { field: 'summary', label: 'In a sentence' },
      ...release,
      { field: 'visibility', label: 'Seen by', as: 'status' },
      { field: 'published_at', label: 'Published', as: 'datetime' },
      { field: 'listing_id', label: 'Listing', as: 'code' },
    ],
    actions: [
      publish,
      deprecate,
      archive('deprecated'),
      archive('draft'),
      { route: 'addMedia', label: 'Add an image', then: 'reload' },
      {
        route: 'deleteListing',
        label: 'Delete',
        tone: 'bad',
        confirm: 'Delete {name} {version} with its images for good?',
        then: { page: 'listings' },
      },
    ],
    tabs: [
      {
        label: 'Roles',
        kind: 'table',
        source: 'listingRoles',
        key: 'name',
        empty: 'It brings no roles: everybody who may sign in may do everything in it.',
        columns: [
          { field: 'name', label: 'Role', as: 'code' },
          { field: 'scopes', label: 'May do' },
          { field: 'signup', label: 'Given to who signs up', as: 'bool' },
        ],
      },
      {
        label: 'Sign-in',
        kind: 'detail',
        fields: [
          { field: 'backend_url', label: 'Backend', as: 'code' },
          { field: 'oauth_defaults', label: 'OAuth defaults', as: 'json' },
          { field: 'dcr_supported', label: 'Registers clients itself', as: 'bool' },
        ],
      },
      {
        label: 'Images',
        kind: 'table',
        source: 'listingImages',
        key: 'role',
        empty: 'It has no images. Add an icon with the button above.',
        columns: [
          { field: 'role', label: 'Shows', as: 'status' },
          { field: 'resolution', label: 'Resolution' },
          { field: 'storage_key', label: 'Object', as: 'code' },
        ],
      },
      {
        label: 'Versions',
        kind: 'table',
        source: 'listingVersions',
        key: 'listing_id',
        open: 'listing',
        empty: 'This is the only release on this channel.',
        columns: [{ field: 'version', label: 'Version' }, status(listings), { field: 'published_at', label: 'Published', as: 'datetime' }],
      },
      {
        label: 'Description',
        kind: 'detail',
        fields: [
          { field: 'description', label: 'Description' },
          { field: 'categories', label: 'Categories', as: 'json' },
          { field: 'onboarding', label: 'Steps before an install', as: 'json' },
        ],
      },
    ],
  },
  instances: {
    kind: 'table',
    icon: 'layers',
    title: 'Installed',
    description: 'Applications of this environment. The secret of one is shown once, when it is installed or changed: copy it then',
    nav: 3,
    source: 'listInstances',
    key: 'instance_id',
    open: 'instance',
    filters: ['status'],
    sort: ['name', 'created_at'],
    live: eventsOf('instance', 'domain'),
    empty: 'Nothing is installed here yet. Install an application with the button above.',
    actions: [{ route: 'install', label: 'Install an application', then: 'show' }],
    columns: [
      { field: 'name', label: 'Name' },
      { field: 'app_slug', label: 'Application', as: 'code' },
      { field: 'version', label: 'Version' },
      { field: 'domain', label: 'Host', as: 'code' },
      status(instances),
      { field: 'created_at', label: 'Installed', as: 'ago' },
    ],
  },
  instance: {
    kind: 'record',
    title: 'Installed application',
    nav: false,
    source: 'getInstance',
    heading: '{name}',
    live: eventsOf('instance', 'domain'),
    fields: [
      status(instances),
      { field: 'last_error', label: 'Why' },
      { field: 'domain', label: 'Host', as: 'code' },
      { field: 'gateway_domain', label: 'Gateway', as: 'code' },
      { field: 'app_slug', label: 'Application', as: 'code', link: { page: 'listing', params: { listing_id: '{listing_id}' } } },
      { field: 'version', label: 'Version' },
      { field: 'oauth_client.client_id', label: 'OAuth client', as: 'code' },
      { field: 'workflow_run_id', label: 'Onboarding', as: 'code' },
      { field: 'created_at', label: 'Installed', as: 'datetime' },
      { field: 'instance_id', label: 'Instance', as: 'code' },
    ],
    actions: [
      { route: 'useDomain', label: 'Use a domain', when: when('active') },
      { route: 'checkDomain', label: 'Check the domain', when: when('active') },
      {
        route: 'unbindDomain',
        label: 'Give the domain up',
        tone: 'warn',
        confirm: '{name} answers on its default host afterwards.',
        when: when('active'),
      },
      {
        route: 'rotateSecret',
        label: 'New secret',
        tone: 'warn',
        confirm: 'The present secret of {name} is worth nothing afterwards.',
        when: when('active'),
        then: 'show',
      },
      {
        route: 'deleteInstance',
        label: 'Uninstall',
        tone: 'bad',
        confirm: 'Uninstall {name} from {domain}? Its client, groups and roles go with it, and its people lose what they may do there.',
        then: { page: 'instances' },
      },
    ],
    tabs: [
      {
        label: 'Domain',
        kind: 'table',
        source: 'instanceDomains',
        key: 'binding_id',
        empty: 'It answers on its default host. Use a domain of your own with the button above.',
        columns: [{ field: 'fqdn', label: 'Domain', as: 'code' }, status(domains), { field: 'last_error', label: 'Why' }],
        rowDetail: [
          { field: 'txt_name', label: 'TXT at', as: 'code' },
          { field: 'txt_record', label: 'holds', as: 'code' },
          { field: 'cname_token', label: 'or an alias at this name below it', as: 'code' },
          { field: 'cname_target', label: 'to', as: 'code' },
        ],
      },
      {
        label: 'Access',
        kind: 'table',
        source: 'instanceAccess',
        key: 'name',
        empty: 'It has no roles and no groups.',
        columns: [
          { field: 'kind', label: 'Kind', as: 'status' },
          { field: 'name', label: 'Name', as: 'code' },
        ],
      },
    ],
  },
  policy: { kind: 'policy', icon: 'shield', title: 'Policy', nav: 8 },
} as const satisfies Readonly<Record<string, PageDecl>>;
