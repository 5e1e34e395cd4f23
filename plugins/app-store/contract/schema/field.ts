import { Type } from '@platform/sdk/contract';

export const AppSlug = Type.String({
  title: 'Application',
  pattern: '^[a-z][a-z0-9-]{1,38}[a-z0-9]$',
  description: 'A short name that all its releases share, such as crm',
});
export const Channel = Type.String({ title: 'Channel', pattern: '^[a-z][a-z0-9-]{0,31}$', default: 'stable' });
export const Version = Type.String({
  title: 'Version',
  pattern: '^[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}$',
  description: 'For people to read, such as 1.4.0; the newest is the one that was published last',
});
/** At least two labels and no address; short enough for the name of its challenge. */
export const Fqdn = Type.String({
  title: 'Domain',
  maxLength: 190,
  pattern: '^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$',
});
