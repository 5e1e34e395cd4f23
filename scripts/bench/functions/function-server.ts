import { readFileSync, readdirSync } from 'node:fs';
import functions from '@platform/functions/plugin';
import storage from '@platform/storage/plugin';
import { as, boot } from '@platform/testing';
import { ECHO } from '../../../plugins/functions/test/fixtures/guests.ts';

/** What the measuring process needs to execute over HTTP. */
export interface FunctionServer {
  readonly port: number;
  readonly ca: string;
  readonly authorization: string;
}
/** CPU milliseconds of this process and of those that run guests, since they began. */
export interface ServerUsage {
  readonly cpuMs: number;
}

const ENV = '01900000-0000-7000-8000-0000000000e1';
const TICK_MS = 10;
const author = as.userIn(ENV, 'func:modules:read', 'func:modules:write', 'func:modules:execute');

await using host = await boot(functions, {
  beside: [{ plugin: storage }],
  stubs: {
    registry: { listServices: async ({ params }) => ({ env_id: params.env_id, services: [] }) },
    statistics: {
      provision: async ({ body }) => ({ property_id: ENV, ...body, created_at: new Date().toISOString() }),
      measure: async () => ({ accepted: true as const }),
    },
  },
});
const by = host.by(author);
const wasm_base64 = Buffer.from(ECHO).toString('base64');
const { module_id } = await by.uploadModule({
  body: { domain: 'credit', product: 'echo', source_language: 'other', wasm_base64, hooks: ['hook'] },
});
await by.validateModule({ params: { module_id }, body: {} });
await by.activateModule({ params: { module_id } });
await by.executeProduct({ params: { product_id: 'echo' }, body: { hook: 'hook', context: {}, idempotency_key: 'first' } });

const guests = () =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => read(pid, 'cmdline').includes('platform-guest') && read(pid, 'status').includes(`PPid:\t${process.pid}\n`));
const read = (pid: string, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    // It ended meanwhile.
    return '';
  }
};
const ticks = (pid: string) => {
  const fields = read(pid, 'stat')
    .replace(/^.*\) /, '')
    .split(' ');
  return Number(fields[11]) + Number(fields[12]);
};

function usage(): ServerUsage {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1_000 + guests().reduce((total, pid) => total + ticks(pid) * TICK_MS, 0) };
}

const { promise: over, resolve: end } = Promise.withResolvers<void>();
process.on('message', () => process.send?.(usage()));
process.once('disconnect', () => end());
process.send?.({
  port: host.process.port,
  ca: host.stores.authority.pq.files.rootCertificate,
  authorization: `Bearer ${host.mint.token(author, 'func')}`,
} satisfies FunctionServer);
await over;
