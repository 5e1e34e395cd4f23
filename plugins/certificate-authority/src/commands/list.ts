import { commandOf, readArguments } from '@platform/sdk';

interface Row {
  readonly certificate_id: string;
  readonly serial: string;
  readonly domain: string;
  readonly kind: string;
  readonly state: string;
  readonly not_after: string;
  readonly source: string;
}
interface Page {
  readonly items: readonly Row[];
  readonly next_cursor: string | null;
}

const FILTERS = ['q', 'kind', 'state', 'source'] as const;
const USAGE = `platform ca list [--q TEXT] [--kind leaf|client|ca] [--state valid|revoked|expired] [--source local|upstream] [--most N]

  The certificates that this platform issued, newest first: id, state, kind, until when, and for which name. --most is 100
  unless you say otherwise.`;

/** `platform ca list`. */
export const list = commandOf<{ query: Record<string, string>; most: number }>({
  usage: USAGE,

  read(args) {
    const { options, rest } = readArguments(args, [...FILTERS, 'most']);
    if (rest.length > 0 || (options.most !== undefined && !/^[1-9]\d{0,5}$/.test(options.most))) return undefined;
    return {
      query: Object.fromEntries(FILTERS.flatMap(name => (options[name] === undefined ? [] : [[name, options[name]]]))),
      most: Number(options.most ?? 100),
    };
  },

  async run({ query, most }, operator) {
    let shown = 0;
    for (let cursor: string | null = null; shown < most; ) {
      const page: Page = await operator.call('acme', 'GET', '/v1/admin/certificates', {
        query: { ...query, limit: Math.min(100, most - shown), ...(cursor ? { cursor } : {}) },
      });
      for (const { certificate_id: id, state, kind, not_after: until, domain } of page.items)
        operator.print(`${id}  ${state.padEnd(7)}  ${kind.padEnd(6)}  ${until.slice(0, 10)}  ${domain}`);
      shown += page.items.length;
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    operator.print(`${shown} ${shown === 1 ? 'certificate' : 'certificates'}`);
    return 0;
  },
});
