import 'reflect-metadata';
import { execFile } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as acme from 'acme-client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AcmeAgent, type CsrKind } from './fixtures/acme-agent.ts';
import { certbot } from './fixtures/certbot.ts';
import { Front } from './fixtures/front.ts';
import { newOpenssl } from './fixtures/openssl.ts';
import { World } from './fixtures/world.ts';

const run = promisify(execFile);
let world: World;
let front: Front;
const bot = await certbot();
beforeAll(async () => {
  world = await World.start({ PLATFORM_ACME_LOCAL_DOMAINS: 'lan' });
  front = await Front.open(world);
});
afterAll(async () => {
  await front[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

describe('clients of the field, unmodified', () => {
  test('CA-080 CA-017 acme-client orders, proves, fetches, renews and revokes', async () => {
    acme.axios.defaults.httpsAgent = new Agent({ ca: front.root });
    const client = new acme.Client({ directoryUrl: `${front.origin}/acme/directory`, accountKey: await acme.crypto.createPrivateKey() });
    const [key, csr] = await acme.crypto.createCsr({ commonName: 'site.lan', altNames: ['site.lan', '*.site.lan', 'other.localhost'] });
    const answered: string[] = [];
    const auto = {
      csr,
      email: 'ops@example.org',
      termsOfServiceAgreed: true,
      skipChallengeVerification: true,
      challengePriority: ['http-01'],
      challengeCreateFn: async (_authz: unknown, { type }: { type: string }) => void answered.push(type),
      challengeRemoveFn: async () => undefined,
    };
    const chain = await client.auto(auto);
    const leaf = new X509Certificate(chain);
    expect([
      leaf.checkHost('site.lan'),
      leaf.checkHost('a.site.lan'),
      leaf.checkHost('other.localhost'),
      leaf.checkPrivateKey(createPrivateKey(key)),
      [...new Set(answered)],
    ]).toEqual(['site.lan', '*.site.lan', 'other.localhost', true, ['http-01']]);
    expect(new X509Certificate(await client.auto(auto)).serialNumber).not.toBe(leaf.serialNumber);
    await client.revokeCertificate(chain, { reason: 4 });
    await expect(client.revokeCertificate(chain)).rejects.toThrow(/revoked/i);
    await client.updateAccount({ contact: ['mailto:new@example.org'] });
    await client.updateAccountKey(await acme.crypto.createPrivateKey());
  });

  test.skipIf(bot === undefined)('CA-080 CA-017 certbot orders, proves and revokes', { timeout: 120_000 }, async () => {
    const home = mkdtempSync(join(tmpdir(), 'platform-certbot-'));
    const bundle = join(home, 'root.pem');
    writeFileSync(bundle, front.root);
    const { command = '', environment = {}, args = [] } = bot ?? {};
    const folders = ['--config-dir', join(home, 'c'), '--work-dir', join(home, 'w'), '--logs-dir', join(home, 'l')];
    const call = (...more: string[]) =>
      run(command, [...args, ...more, ...folders, '--server', `${front.origin}/acme/directory`, '--non-interactive'], {
        env: { ...process.env, ...environment, REQUESTS_CA_BUNDLE: bundle },
        timeout: 100_000,
      });
    mkdirSync(join(home, 'webroot'));
    await call(
      'certonly',
      '--webroot',
      '-w',
      join(home, 'webroot'),
      '-d',
      'bot.lan',
      '-d',
      'bot.localhost',
      '--agree-tos',
      '-m',
      'ops@example.org',
      '--no-eff-email',
    );
    const live = join(home, 'c', 'live', 'bot.lan');
    const leaf = new X509Certificate(readFileSync(join(live, 'cert.pem')));
    expect([
      leaf.checkHost('bot.lan'),
      leaf.checkHost('bot.localhost'),
      leaf.checkPrivateKey(createPrivateKey(readFileSync(join(live, 'privkey.pem')))),
    ]).toEqual(['bot.lan', 'bot.localhost', true]);
    await call('revoke', '--cert-path', join(live, 'cert.pem'), '--no-delete-after-revoke');
    expect(await world.kv.call('EXISTS', `revoked:cert:${world.thumbprint(leaf.toString())}`)).toBe(1);
  });
});

describe('verifiers of the field', () => {
  const openssl = newOpenssl();
  const chains = async (kind: CsrKind) => {
    const { chain } = await (await AcmeAgent.of(world)).obtain(['strict.localhost', '10.0.0.1', '::1'], kind);
    const [leaf = '', intermediate = ''] = chain.split(/(?<=-----END CERTIFICATE-----\n)/);
    return { leaf, intermediate, root: world.stores.authority[kind.startsWith('pq') ? 'pq' : 'classical'].files.rootCertificate };
  };
  const strict = async ([program = '', ...args]: readonly string[], files: Record<string, string>) => {
    const home = mkdtempSync(join(tmpdir(), 'platform-openssl-'));
    try {
      for (const [name, text] of Object.entries(files)) writeFileSync(join(home, `${name}.pem`), text);
      const checks = [
        '-x509_strict',
        '-purpose',
        'sslserver',
        '-verify_hostname',
        'strict.localhost',
        '-CAfile',
        'root.pem',
        '-untrusted',
        'intermediate.pem',
      ];
      return (await run(program, [...args, 'verify', ...checks, 'leaf.pem'], { cwd: home })).stdout.trim();
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  };

  test.each(['classical', 'p384', 'rsa', 'ed25519'] as const)(
    'CA-001 openssl -x509_strict of this system accepts the chain of a %s key',
    async kind => {
      expect(await strict(['openssl'], await chains(kind))).toBe('leaf.pem: OK');
    },
  );

  test.skipIf(openssl === undefined).each(['pq44', 'pq', 'pq87', 'classical'] as const)(
    'CA-001 openssl 3.5 -x509_strict accepts the chain of a %s key',
    async kind => {
      expect(await strict(openssl ?? [], await chains(kind))).toBe('leaf.pem: OK');
    },
  );
});
