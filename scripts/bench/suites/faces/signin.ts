import type { Browser } from 'playwright';
import { openBrowser } from '../../../../e2e/fixtures/browser/browser.ts';
import { Platform } from '../../../../e2e/fixtures/platform.ts';
import { median, type Row } from '../../row.ts';

const LOADS = 11;
/** A phone of some years, beside this machine. */
const SLOWER = 4;

/**
 * What a first visit of the sign-in page moves over the wire, and when something is to be seen on a slow processor. Every load has an empty
 * cache.
 */
export async function* signInPageRows(): AsyncGenerator<Row> {
  await using platform = new Platform({ split: false, pluginDirs: '' });
  await platform.start();
  const browser = await openBrowser(platform);
  try {
    const address = `${platform.ready.auth}/sign-in?client_id=console&scope=openid`;
    await load(browser, address);
    const loads: Awaited<ReturnType<typeof load>>[] = [];
    for (let turn = 0; turn < LOADS; turn++) loads.push(await load(browser, address));
    const paints = loads.map(({ paint }) => paint);
    const note = `${LOADS} first visits, processor ${SLOWER}× slower`;
    yield* [
      {
        name: 'sign-in page, everything transferred (document, style, script, branding)',
        value: Math.max(...loads.map(({ bytes }) => bytes)) / 1_000,
        unit: 'kB',
        limit: 60,
      },
      { name: 'sign-in page, first contentful paint, median', value: median(paints), unit: 'ms', limit: 1_000, note },
      { name: 'sign-in page, first contentful paint, worst', value: Math.max(...paints), unit: 'ms', limit: 1_000, note },
      { name: 'sign-in page, ready to sign in, median', value: median(loads.map(({ ready }) => ready)), unit: 'ms', note },
    ];
  } finally {
    await browser.close();
  }
}

async function load(browser: Browser, address: string): Promise<{ bytes: number; paint: number; ready: number }> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  try {
    const page = await context.newPage();
    const debug = await context.newCDPSession(page);
    await debug.send('Network.enable');
    await debug.send('Emulation.setCPUThrottlingRate', { rate: SLOWER });
    let bytes = 0;
    // Headers and bodies as they came, compressed.
    debug.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    const branded = page.waitForResponse('**/v1/branding').then(response => response.finished());
    await page.goto(address, { waitUntil: 'load' });
    await page.locator('[type=submit]:enabled').waitFor();
    const ready = await page.evaluate(() => performance.now());
    await branded;
    await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    return {
      bytes,
      ready,
      paint: await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN),
    };
  } finally {
    await context.close();
  }
}
