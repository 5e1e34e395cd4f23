import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { definePlugin, SYSTEM } from '@platform/sdk';
import { web } from '../contract/index.ts';
import { StaticFiles } from './static-files.ts';

const BUNDLE = fileURLToPath(new URL('../../../console/dist', import.meta.url));
/** What the console listens to beside the pages' own events (G-CON-01, and what changes its navigation). */
const LIVE_TYPES = [
  'platform:sys:org:created',
  'platform:sys:org:updated',
  'platform:sys:org:archived',
  'platform:sys:env:created',
  'platform:sys:env:updated',
  'platform:sys:env:archived',
  'platform:sys:membership:removed',
  'platform:sys:invitation:sent',
  'platform:sys:invitation:revoked',
  'platform:sys:invitation:accepted',
  'platform:sys:service:updated',
  'platform:sys:vertical:registered',
  'platform:sys:vertical:changed',
  'platform:stat:traffic:snapshot',
];

export default definePlugin(web, {
  setup(ctx) {
    if (!existsSync(BUNDLE)) throw new Error('console/dist is missing; `npm start` builds it');
    const files = new StaticFiles(BUNDLE);
    const host = (label: string) => ctx.platform.publicOrigin(`${label}.ops.sys.${ctx.platform.domain}`);
    const gateway = host('bff.console');
    const policy = [
      "default-src 'self'",
      `connect-src 'self' ${gateway} ${gateway.replace('https:', 'wss:')}`,
      "img-src 'self' https: data:",
      // Attributes alone: a mail or another foreign document in its sandboxed frame looks as its author meant.
      "style-src-attr 'unsafe-inline'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      `form-action 'self' ${gateway}`,
    ].join('; ');
    return {
      routes: {
        consoleConfig: async () => ({
          gateway,
          services: { registry: 'sys', identity: 'auth', app_store: 'app' },
          live_types: LIVE_TYPES,
          system: { org_id: SYSTEM.orgId, env_id: SYSTEM.envId },
        }),
        asset: async ({ request, params }) => {
          if (request.method !== 'GET' && request.method !== 'HEAD')
            throw ctx.problem('method_not_allowed', { headers: { allow: 'GET, HEAD' } });
          const path = `/${params['path'] ?? ''}`;
          const response = files.respond(path === '/' ? '/index.html' : path, request);
          if (!response) throw ctx.problem('not_found', { detail: 'The console has no such file.' });
          response.headers.set('content-security-policy', policy);
          response.headers.set('referrer-policy', 'no-referrer');
          return response;
        },
      },
    };
  },
});
