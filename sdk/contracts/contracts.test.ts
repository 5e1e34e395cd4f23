import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ASKED_ROUTES } from '@platform/kernel/host/asked-routes';
import { readPlugin } from '@platform/kernel/host/plugin/loader';
import type { AnyContract } from '@platform/sdk';
import { expect, test } from 'vitest';
import * as contracts from './index.ts';

test('KRN-025 every event of the platform has its contract in the one common package', async () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const { services } = JSON.parse(readFileSync(`${root}catalog/platform.json`, 'utf8')) as { services: { package: string }[] };
  const shared = new Map((Object.values(contracts) as AnyContract[]).map(contract => [contract.base.id as string, contract]));
  for (const { package: name } of services) {
    const { contract, manifest } = await readPlugin(`${root}plugins/${name}`);
    if (Object.keys(contract.events).length > 0) expect([manifest.id, shared.get(manifest.id)]).toEqual([manifest.id, contract]);
  }
});

test('KRN-025 what the kernel asks of services by wire path is what their contracts say', () => {
  const shared = new Map((Object.values(contracts) as AnyContract[]).map(contract => [contract.base.id as string, contract]));
  for (const [service, routes] of Object.entries(ASKED_ROUTES)) {
    const declared = Object.fromEntries(
      Object.keys(routes).map(name => {
        const { method, path } = shared.get(service)?.routes[name] ?? {};
        return [name, { method, path }];
      }),
    );
    expect([service, declared]).toEqual([service, routes]);
  }
});
