import 'reflect-metadata';
import { ProblemError } from '@platform/sdk';
import { expect, test } from 'vitest';
import { ManualClock, platformNames } from '@platform/testing';
import { bootstrapCertificate } from '../../src/certificates/bootstrap-certificate.ts';
import { EdgeCertificates } from '../../src/certificates/edge-certificates.ts';

/** Certificates over an authority that says what it is told to, with a key of its own for each name. */
function certificatesOf(answer: (name: string) => Promise<'issued' | 'running'>, most = 1_000) {
  const clock = new ManualClock();
  const asked: string[] = [];
  const certificates = new EdgeCertificates({
    platform: platformNames('localhost'),
    config: { certificates: most },
    clock,
    every: clock.every.bind(clock),
    log: { warn: () => undefined },
    services: {
      authority: {
        fetchCertificate: async ({ body: { domain } }: { body: { domain: string } }) => {
          asked.push(domain);
          if ((await answer(domain)) === 'running') return undefined;
          const { key, cert } = await bootstrapCertificate(domain, clock.now());
          return { key_pem: key, chain_pem: cert, not_after: new Date(clock.now().getTime() + 90 * 86_400_000).toISOString() };
        },
      },
    },
  } as never);
  return {
    clock,
    asked,
    figures: () => certificates.figures,
    get: (hostname: string) => certificates.contextFor({ hostname, source: 'custom' }),
  };
}
const issued = async () => 'issued' as const;

test('G-K-23 at two thirds of its life a certificate is asked for anew, while the old one serves; one that is over serves no more', async () => {
  const { clock, asked, get } = certificatesOf(issued);
  const first = await get('shop.example');
  await clock.leap('59d');
  expect([await get('shop.example'), asked.length]).toEqual([first, 1]);
  await clock.leap('2d');
  expect([(await get('shop.example')) === first, asked.length]).toEqual([true, 2]);
  await expect.poll(async () => (await get('shop.example')) === first).toBe(false);
  const second = await get('shop.example');
  await clock.leap('91d');
  expect([(await get('shop.example')) === second, asked.length]).toEqual([false, 3]);
});

test('H-04 a name that was refused is asked for again after thirty seconds, one that is being got a second after its fifteen', async () => {
  let running = true;
  const { clock, asked, get } = certificatesOf(async name => {
    if (name === 'no.example') throw new ProblemError('acme', 'name_not_owned', { status: 403, title: 'no', retry: 'never' });
    return running ? 'running' : 'issued';
  });
  const times = (name: string) => asked.filter(one => one === name).length;
  const waiting = get('soon.example');
  for (const _ of [1, 2, 3]) expect(await get('no.example')).toBe(undefined);
  for (let half = 1; half <= 30; half++) {
    await expect.poll(() => times('soon.example')).toBe(half);
    await clock.advance('500ms');
  }
  expect([await waiting, await get('soon.example'), times('soon.example'), times('no.example')]).toEqual([undefined, undefined, 31, 1]);
  running = false;
  await clock.leap('1s');
  expect([(await get('soon.example')) === undefined, await get('no.example')]).toEqual([false, undefined]);
  await clock.leap('14s');
  await get('no.example');
  expect([times('soon.example'), times('no.example')]).toEqual([32, 2]);
});

test('G-K-23 no more than the authority takes are asked for at once', async () => {
  const gate = Promise.withResolvers<void>();
  const { asked, get } = certificatesOf(async () => (await gate.promise, 'issued'));
  const all = Array.from({ length: 100 }, (_, index) => get(`n${index}.example`));
  await expect.poll(() => asked.length).toBe(48);
  gate.resolve();
  expect((await Promise.all(all)).filter(context => context !== undefined)).toHaveLength(48);
});

test('the host that is asked for all the time keeps its certificate, however many others come by', async () => {
  const { asked, figures, get } = certificatesOf(issued, 3);
  for (const name of ['busy.example', 'a.example', 'b.example', 'c.example', 'd.example', 'e.example']) {
    await get(name);
    await get('busy.example');
  }
  expect(asked.filter(name => name === 'busy.example')).toHaveLength(1);
  expect(figures()).toMatchObject({ edge_certificates: 3, edge_certificates_evicted_total: 3 });
});
