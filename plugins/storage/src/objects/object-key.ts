import type { Caller } from '@platform/sdk';

/** Characters that travel in a path, a listing and a log line as they are. */
const SEGMENT = /^[A-Za-z0-9._~!$&'()*+,;=:@ -]{1,255}$/;
const MAX_KEY = 1_024;

/** What is wrong with a key; nothing where it can be stored. */
export function faultOf(key: string): string | undefined {
  if (key.length > MAX_KEY) return `A key has at most ${MAX_KEY} characters.`;
  for (const segment of key.split('/')) {
    if (segment === '.' || segment === '..') return 'A key has no segment that is a full stop or two.';
    if (!SEGMENT.test(segment))
      return "A key is segments of letters, digits and -._~!$&'()*+,;=:@ or space, with a slash between them and none at its ends.";
  }
  return undefined;
}

/**
 * What a caller's keys begin with (G-STO-01): a service of the platform has the folder of its own name, `app/` or `func/`; a vertical's
 * service has one for each environment, below its vertical, so that it never reads what it wrote for somebody else.
 */
export function prefixOf(caller: Caller | undefined, envId: string | undefined): string | undefined {
  if (caller?.kind !== 'machine') return undefined;
  if (caller.vertical === 'platform') return `${caller.service}/`;
  return caller.vertical === undefined || envId === undefined ? undefined : `v/${caller.vertical}/${caller.service}/${envId}/`;
}
