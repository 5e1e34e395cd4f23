import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BasicConstraintsExtension, X509Certificate as Certificate, KeyUsageFlags, KeyUsagesExtension } from '@peculiar/x509';
import { afterAll, describe, expect, test } from 'vitest';
import { makeCsr, readCsr } from './authority.ts';
import { openAuthority, readAuthority } from './trust-anchors.ts';

const root = mkdtempSync(join(tmpdir(), 'platform-test-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folder = 0;
const fresh = () => {
  const directory = join(root, `data-${++folder}`);
  mkdirSync(directory);
  return directory;
};

describe('the authority’s files', () => {
  const PARTS = ['root.crt', 'root.key', 'intermediate.crt', 'intermediate.key'].flatMap(file => [file, `classical/${file}`]);
  const contents = (directory: string) =>
    Object.fromEntries(
      PARTS.map(part => [part, existsSync(join(directory, 'ca', part)) ? readFileSync(join(directory, 'ca', part), 'utf8') : undefined]),
    );

  test.each(PARTS)('F-01 a missing %s stops the boot with its name, and every other part stays as it was', async part => {
    const directory = fresh();
    await openAuthority(directory);
    rmSync(join(directory, 'ca', part));
    const before = contents(directory);
    await expect(openAuthority(directory)).rejects.toThrow(`${join(directory, 'ca', part)} missing`);
    expect(contents(directory)).toEqual(before);
  });

  test.each(['pg/PG_VERSION', 'kv/wasm/dump.rdb', 'keys/bff.key', 'audit/witness.db', 'verticals/loans/x'])(
    'F-01 a missing authority beside %s stops the boot, and none is made',
    async file => {
      const directory = fresh();
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      writeFileSync(join(directory, file), 'x');
      await expect(openAuthority(directory)).rejects.toThrow(
        `${join(directory, 'ca')} is missing beside ${join(directory, file.split('/')[0] as string)}`,
      );
      expect(existsSync(join(directory, 'ca'))).toBe(false);
    },
  );

  test.each<[string, string, string]>([
    ['root key', 'root.key', 'classical/root.key'],
    ['intermediate key', 'intermediate.key', 'classical/intermediate.key'],
    ['root certificate', 'root.crt', 'root.crt'],
  ])('F-01 a %s of another authority stops the boot', async (_, part, foreignPart) => {
    const [directory, foreign] = [fresh(), fresh()];
    await openAuthority(directory);
    await openAuthority(foreign);
    copyFileSync(join(foreign, 'ca', foreignPart), join(directory, 'ca', part));
    await expect(openAuthority(directory)).rejects.toThrow(`The certificate authority in ${join(directory, 'ca')} cannot be used`);
  });

  test('F-01 are made whole or not at all: what a killed start left is swept, and the second start opens the first one’s', async () => {
    const directory = fresh();
    mkdirSync(join(directory, 'ca-new-abc', 'classical'), { recursive: true });
    writeFileSync(join(directory, 'ca-new-abc', 'root.key'), 'half');
    const made = await openAuthority(directory);
    expect(readdirSync(directory)).toEqual(['ca']);
    expect(
      ['root.crt', 'classical/root.crt'].map(
        part => new X509Certificate(readFileSync(join(directory, 'ca', part))).publicKey.asymmetricKeyType,
      ),
    ).toEqual(['ml-dsa-87', 'ec']);
    expect((await openAuthority(directory)).pq.files).toEqual(made.pq.files);
    expect(PARTS.map(part => statSync(join(directory, 'ca', part)).mode & 0o777)).toEqual(
      PARTS.map(part => (part.endsWith('.key') ? 0o600 : 0o644)),
    );
  });

  test('G-ACME-01 the intermediate signs leafs and no further authority; what a leaf may be used for is not to be overlooked', async () => {
    const { pq, classical } = await openAuthority(fresh());
    for (const hierarchy of [pq, classical]) {
      const parsed = (pem: string) => new Certificate(pem);
      const { rootCertificate, intermediateCertificate } = hierarchy.files;
      const constraints = [rootCertificate, intermediateCertificate].map(pem => parsed(pem).getExtension(BasicConstraintsExtension));
      expect(constraints.map(extension => [extension?.ca, extension?.pathLength, extension?.critical])).toEqual([
        [true, 1, true],
        [true, 0, true],
      ]);
      const leaf = parsed(
        (await hierarchy.issue({ commonName: 'x', names: ['dns:x.localhost'], usages: ['server'], days: 1 })).certificate,
      );
      const usage = leaf.getExtension(KeyUsagesExtension);
      expect([usage?.critical, usage?.usages, leaf.getExtension(BasicConstraintsExtension)?.ca]).toEqual([
        true,
        KeyUsageFlags.digitalSignature,
        false,
      ]);
    }
  });

  test('a request carries the names it was made with, and none where there are none', async () => {
    const namesOf = async (names: string[]) => (await readCsr((await makeCsr('pq', 'x', names)).csr)).names;
    expect([await namesOf(['dns:a.localhost', 'dns:b.localhost']), await namesOf([])]).toEqual([
      ['dns:a.localhost', 'dns:b.localhost'],
      [],
    ]);
  });

  test('F-01 are never made by a process that only reads them', async () => {
    const directory = fresh();
    await expect(readAuthority(directory)).rejects.toThrow('incomplete');
    expect(readdirSync(directory)).toEqual([]);
  });
});
