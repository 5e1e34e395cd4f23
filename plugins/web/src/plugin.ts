import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { appStore } from '@platform/app-store/contract';
import { identity } from '@platform/identity/contract';
import { registry } from '@platform/registry/contract';
import { definePlugin, type Manifest, SYSTEM } from '@platform/sdk';
import { web } from '../contract/index.ts';
import { StaticFiles } from './static-files.ts';

const BUNDLE = fileURLToPath(new URL('../../../console/dist', import.meta.url));

/** What the console listens to beside the events of the page that it shows (G-CON-01). */
const everyPages = (manifests: readonly Manifest[]): string[] =>
  manifests.flatMap(({ events }) => Object.keys(events).filter(name => events[name]?.everyPage));

export default definePlugin(web, {
  setup(ctx) {
    if (!existsSync(BUNDLE)) throw new Error('console/dist is missing; `npm start` builds it');
    const files = new StaticFiles(BUNDLE);
    const host = (label: string) => ctx.platform.publicOrigin(ctx.platform.host(label));
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
          services: { registry: registry.base.id, identity: identity.base.id, app_store: appStore.base.id },
          live_types: everyPages(ctx.catalog.manifests()),
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
