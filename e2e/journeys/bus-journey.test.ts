import { SYSTEM } from '@platform/sdk';
import type { Page } from 'playwright';
import { beforeAll, describe, expect, test } from 'vitest';
import { ConsoleVisit, MODE } from '../fixtures/browser/console-visit.ts';
import { BrowserSession } from '../../scripts/bench/suites/faces/browser-session.ts';
import { Crowd } from '../../scripts/bench/load/crowd.ts';
import { CHOSEN, enterAsFirstAdministrator } from '../fixtures/first-administrator.ts';
import { inKeyValueOf } from '../fixtures/key-value.ts';
import type { Platform } from '../fixtures/platform.ts';

const ENV = SYSTEM.envId;

describe(`the event bus as an operator sees it, ${MODE}`, () => {
  const visit = ConsoleVisit.ofSuite();
  const { platform } = visit;
  let ada: Page;

  beforeAll(() => {
    ada = visit.page;
  });

  const shot = (name: string) => visit.shot(`bus-${name}`);
  const open = (path: string) => visit.goTo(path);

  test('1 an administrator signs in, and the bus has dead letters', async () => {
    await enterAsFirstAdministrator(ada, platform);
    await inKeyValueOf(platform.ready.data_dir, async store => {
      for (const [n, [event_type, reason]] of [
        ['platform:shop:order:created', 'retries_exhausted: smtp: down'],
        ['platform:shop:order:paid', 'bad_address: nobody lives there'],
        ['platform:shop:order:created', 'retries_exhausted: smtp: down'],
      ].entries()) {
        const id = `01900000-0000-7000-8000-00000000000${n}`;
        const at = new Date().toISOString();
        const envelope = {
          event_type,
          payload: JSON.stringify({ order_id: `o-${n}`, items: [{ sku: 'tea', count: 2 }] }),
          created_at: at,
          produced_at: at,
          produced_by: 'shop',
          publisher_subject: 'shop',
          correlation_id: `c-${n}`,
          idempotency_key: `k-${n}`,
        };
        const history = [1, 2, 3].map(attempt => ({ at, reason: `${reason} (${attempt})`, consumer: 'mail-1' }));
        const body = {
          envelope,
          id: `17000000000${n}-0`,
          family: 'shop',
          deliveries: 1,
          reason,
          history,
          attempts: 3,
          group: 'mail.orders',
          failed_at: at,
        };
        await store.zadd(`busq:{${ENV}}:dlq`, 0, id);
        await store.hset(`busq:{${ENV}}:dlq:bodies`, id, JSON.stringify(body));
        await store.sadd('busq:envs', ENV);
      }
    });
  });

  test('2 BUS-056 overview, streams, consumers, metrics and policy show what is there', async () => {
    await open(`bus/overview?env=${ENV}`);
    await ada.getByText('Consumer groups').waitFor();
    await expect.poll(() => ada.locator('.figure-card', { hasText: 'Dead letters' }).locator('.figure').innerText()).toBe('3');
    await shot('overview');
    await open(`bus/streams?env=${ENV}`);
    await ada.getByRole('cell', { name: 'sys', exact: true }).waitFor();
    await shot('streams');
    await open(`bus/consumers?env=${ENV}`);
    await ada
      .getByRole('cell', { name: /environmentChanged/ })
      .first()
      .waitFor();
    await shot('consumers');
    await open(`bus/metrics?env=${SYSTEM.envId}`);
    await ada.getByText('Event stream clients').waitFor();
    // A second reading, and the figures have a history to draw.
    await ada.locator('.spark').first().waitFor({ state: 'attached' });
    await shot('metrics');
    await open(`bus/policy?env=${ENV}`);
    await ada.getByRole('tab', { name: 'Relations' }).waitFor();
    await shot('policy');
  });

  test('3 H-25 a dead letter shows its payload and every attempt', async () => {
    await open(`bus/dlq?env=${ENV}`);
    await ada.getByRole('cell', { name: 'platform:shop:order:paid' }).waitFor();
    await shot('dlq');
    await ada
      .getByRole('row', { name: /order:paid/ })
      .getByRole('button', { name: 'Details' })
      .click();
    const dialog = ada.getByRole('dialog');
    await dialog.getByText('"sku": "tea"').waitFor();
    await dialog.getByText(/bad_address: nobody lives there \(3\)/).waitFor();
    await shot('dlq-detail');
    await dialog.getByRole('button', { name: 'Close' }).click();
  });

  test('4 BUS-039 what matches is shown first, then replayed; one is replayed from its row', async () => {
    await ada.getByRole('button', { name: 'Replay matching' }).click();
    const form = ada.getByRole('dialog');
    await form.getByLabel('Reason contains').fill('smtp');
    await shot('dlq-replay');
    await form.getByRole('button', { name: 'Replay matching' }).click();
    await ada.getByRole('dialog').getByText('"matched": 2').waitFor();
    await shot('dlq-dry-run');
    await ada.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    expect(await ada.getByRole('button', { name: 'Details' }).count()).toBe(3);
    await ada.getByRole('button', { name: 'Replay matching' }).click();
    await form.getByLabel('Reason contains').fill('smtp');
    await form.getByLabel('Only show what would be replayed').click();
    await form.getByRole('button', { name: 'Replay matching' }).click();
    await ada.getByRole('dialog').getByText('"replayed": 2').waitFor();
    await ada.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await expect.poll(() => ada.getByRole('button', { name: 'Details' }).count()).toBe(1);
    await ada
      .getByRole('row', { name: /order:paid/ })
      .getByRole('button', { name: 'Replay', exact: true })
      .click();
    await ada.getByRole('dialog').getByRole('button', { name: 'Replay' }).click();
    await ada.getByText('Every event has been handled.').waitFor();
  });

  test('5 KRN-030 F-16 F-17 with streams, slow bodies, long polls and odd requests at the door every service answers, and people sign in', async () => {
    await using ada = await signedIn(platform);
    await using crowd = await Crowd.gather(platform.ready, ada, {
      streams: 100,
      slowBodies: 100,
      expecting: 100,
      asterisks: 100,
      longPolls: 100,
    });
    const { port } = new URL(platform.ready.console);
    for (const service of platform.ready.plugins) {
      const { status, text } = await ada.fetch(`https://${service}.ops.sys.localhost:${port}/v1/health`);
      const { build } = JSON.parse(text) as { build: string };
      expect([service, status, build]).toEqual([service, 200, platform.ready.build]);
    }
    await using again = await signedIn(platform);
    expect((await again.fetch(`${platform.ready.gateway}/auth/session`)).status).toBe(200);
    const { expecting, asterisks, ...lasting } = await crowd.seen();
    expect([expecting, asterisks]).toEqual([100, 100]);
    // The crowd is still there; one of it that missed its heartbeat, or is just being replaced, does not make it another.
    for (const [kind, count] of Object.entries(lasting)) expect(count, kind).toBeGreaterThanOrEqual(90);
  });
});

async function signedIn({ ready, firstStart }: Platform): Promise<BrowserSession> {
  const session = new BrowserSession(ready);
  await session.signIn(firstStart.email, CHOSEN, CHOSEN);
  return session;
}
