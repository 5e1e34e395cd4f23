import { X509Certificate } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Authority, anchorsOf, openAuthority } from './certificates/trust-anchors.ts';
import { type CredentialKind, type Mint, Workload } from './workload.ts';

const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
let authority: Authority;
beforeAll(async () => {
  authority = await openAuthority(root);
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

let folder = 0;
const fresh = () => join(root, `keys-${++folder}`);
const signing =
  (asked: CredentialKind[], by: Authority = authority): Mint =>
  async ({ kind, workload, hostnames, csr }) => {
    asked.push(kind);
    const names = kind === 'listener' ? hostnames.map(host => `dns:${host}`) : [`uri:urn:platform:workload:${workload}`];
    return (
      await (kind === 'database' ? by.classical : by.pq).issue({
        commonName: `m2m-${workload}`,
        names,
        usages: kind === 'listener' ? ['server'] : ['client'],
        days: 30,
        csr,
      })
    ).chain;
  };
const open = (directory: string, mint: Mint, more: { hostnames?: string[]; kinds?: CredentialKind[] } = {}) =>
  Workload.open({
    name: 'probe',
    directory,
    anchors: anchorsOf(authority),
    pqMode: 'strict',
    hostnames: more.hostnames ?? ['probe.ops.sys.localhost'],
    kinds: more.kinds ?? ['client', 'database', 'listener'],
    mint,
  });
const DAY = 86_400_000;

test('KRN-028 a client certificate that was refused at one boot is asked for again at the next', async () => {
  const directory = fresh();
  const asked: CredentialKind[] = [];
  await expect(
    open(
      directory,
      async () => {
        throw new Error('the authority is away');
      },
      { kinds: ['client'] },
    ),
  ).rejects.toThrow('the authority is away');
  expect(existsSync(join(directory, 'probe', 'client.crt'))).toBe(false);
  const workload = await open(directory, signing(asked), { kinds: ['client'] });
  expect(asked).toEqual(['client']);
  expect(workload.thumbprint).toMatch(/^[A-Za-z0-9_-]{43}$/);
});

test('what is on disk is used again, its key readable by its owner alone', async () => {
  const directory = fresh();
  const asked: CredentialKind[] = [];
  const first = await open(directory, signing(asked));
  const second = await open(directory, signing(asked));
  expect(asked).toEqual(['client', 'database', 'listener']);
  expect(second.thumbprint).toBe(first.thumbprint);
  expect(statSync(join(directory, 'probe', 'client.key')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(directory, 'probe', 'client.crt'), 'utf8')).not.toContain('PRIVATE KEY');
});

describe('a certificate is made anew', () => {
  test('when two thirds of its life are over, without a restart, and who uses it is told', async () => {
    const asked: CredentialKind[] = [];
    const workload = await open(fresh(), signing(asked), { kinds: ['client'] });
    const old = workload.thumbprint;
    const told: CredentialKind[] = [];
    const listening = workload.onRenewed(kind => told.push(kind));
    expect(await workload.renewDue(Date.now() + 19 * DAY)).toEqual([]);
    expect(await workload.renewDue(Date.now() + 21 * DAY)).toEqual(['client']);
    expect(workload.thumbprint).not.toBe(old);
    expect(told).toEqual(['client']);
    listening[Symbol.dispose]();
    await workload.renewDue(Date.now() + 60 * DAY);
    expect(told).toEqual(['client']);
  });

  test('but a renewal that fails leaves the old one in use', async () => {
    let away = false;
    const mint = signing([]);
    const workload = await open(fresh(), request => (away ? Promise.reject(new Error('away')) : mint(request)), { kinds: ['client'] });
    const old = workload.thumbprint;
    away = true;
    await expect(workload.renewDue(Date.now() + 25 * DAY)).rejects.toThrow('away');
    expect(workload.thumbprint).toBe(old);
  });

  test('when the listener answers on further names', async () => {
    const directory = fresh();
    const asked: CredentialKind[] = [];
    await open(directory, signing(asked), { kinds: ['listener'] });
    const workload = await open(directory, signing(asked), {
      kinds: ['listener'],
      hostnames: ['probe.ops.sys.localhost', 'more.ops.sys.localhost'],
    });
    expect(asked).toEqual(['listener', 'listener']);
    expect(new X509Certificate(workload.credential('listener').certificate).checkHost('more.ops.sys.localhost')).toBeDefined();
  });

  test('when another authority signed it', async () => {
    const directory = fresh();
    const asked: CredentialKind[] = [];
    const foreign = await openAuthority(fresh());
    await open(directory, signing(asked, foreign), { kinds: ['client'] });
    const workload = await open(directory, signing(asked), { kinds: ['client'] });
    expect(asked).toEqual(['client', 'client']);
    expect(
      new X509Certificate(workload.credential('client').certificate).checkIssued(
        new X509Certificate(authority.pq.files.intermediateCertificate),
      ),
    ).toBe(true);
  });

  test('when its chain is missing beside a key: the key goes first, a crash between leaves nothing usable', async () => {
    const directory = fresh();
    const asked: CredentialKind[] = [];
    await open(directory, signing(asked), { kinds: ['client'] });
    rmSync(join(directory, 'probe', 'client.crt'));
    await open(directory, signing(asked), { kinds: ['client'] });
    expect(asked).toEqual(['client', 'client']);
  });
});
