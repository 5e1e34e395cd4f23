import { BoundedMap } from '@platform/sdk';
import 'reflect-metadata';
import { createPrivateKey, generateKeyPair, hash, type KeyObject, KeyObject as Keys, randomBytes, X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import * as x509 from '@peculiar/x509';
import { BadRequest, type CertificateRequest, readCertificateRequest } from './certificate-request.ts';
import { type Issuer, readIssuer, signLeaf } from './leaf-certificate.ts';

x509.cryptoProvider.set(globalThis.crypto as Crypto);

export type HierarchyName = 'pq' | 'classical';

/** A certificate and its key, PEM. `chain` is leaf first, root left out. */
export interface Credential {
  readonly certificate: string;
  readonly chain: string;
  readonly key: string;
}

type Signing = { name: 'ML-DSA-87' } | { name: 'ML-DSA-65' } | { name: 'ECDSA'; namedCurve: 'P-256'; hash: 'SHA-256' };
const CLASSICAL: Signing = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const ALGORITHMS: Record<HierarchyName, { root: Signing; intermediate: Signing; leaf: Signing }> = {
  pq: { root: { name: 'ML-DSA-87' }, intermediate: { name: 'ML-DSA-65' }, leaf: { name: 'ML-DSA-65' } },
  classical: { root: CLASSICAL, intermediate: CLASSICAL, leaf: CLASSICAL },
};

const DAY_MS = 86_400_000;
/** Clocks of other machines may run behind ours (G-ACME-01). */
const BACKDATE_MS = 5 * 60_000;

export interface HierarchyFiles {
  readonly rootCertificate: string;
  readonly rootKey: string;
  readonly intermediateCertificate: string;
  readonly intermediateKey: string;
}

export interface LeafRequest {
  readonly commonName: string;
  /** `dns:name`, `ip:1.2.3.4` or `uri:urn:…`; at least one (SAN is mandatory). */
  readonly names: readonly string[];
  readonly usages: readonly ('server' | 'client')[];
  readonly days: number;
  /** PKCS#10 in PEM or DER; its proof of possession is checked. Without one a key is made. */
  readonly csr?: string | Uint8Array;
  /** Exact instants instead of `days`, clamped to the intermediate's. */
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface IssuedLeaf {
  readonly certificate: string;
  readonly chain: string;
  /** Only when no CSR was given. */
  readonly key: string | undefined;
  readonly serial: string;
  readonly thumbprint: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** One hierarchy of the platform: Root → Intermediate → leafs (G-ACME-01). Signing happens here and nowhere else. */
export class Hierarchy {
  readonly name: HierarchyName;
  readonly files: HierarchyFiles;
  readonly #end: Date;
  readonly #issuer: Issuer;

  private constructor(name: HierarchyName, files: HierarchyFiles) {
    this.name = name;
    this.files = files;
    const intermediate = new X509Certificate(files.intermediateCertificate);
    this.#end = new Date(intermediate.validTo);
    this.#issuer = {
      ...readIssuer(intermediate.raw),
      key: createPrivateKey(files.intermediateKey),
      algorithm: name === 'pq' ? 'ML-DSA-65' : 'ECDSA',
    };
  }

  static async create(name: HierarchyName, validity: { rootDays: number; intermediateDays: number }): Promise<Hierarchy> {
    const algorithms = ALGORITHMS[name];
    const label = name === 'pq' ? 'Platform' : 'Platform Classical';
    const rootKeys = await makeKeys(algorithms.root);
    const root = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serial(),
      name: `CN=${label} Root CA,O=Platform`,
      notBefore: new Date(Date.now() - BACKDATE_MS),
      notAfter: new Date(Date.now() + validity.rootDays * DAY_MS),
      keys: rootKeys,
      signingAlgorithm: algorithms.root,
      extensions: [
        new x509.BasicConstraintsExtension(true, 1, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(rootKeys.publicKey),
      ],
    });
    const keys = await makeKeys(algorithms.intermediate);
    const intermediate = await x509.X509CertificateGenerator.create({
      serialNumber: serial(),
      subject: `CN=${label} Intermediate CA,O=Platform`,
      issuer: root.subject,
      notBefore: new Date(Date.now() - BACKDATE_MS),
      notAfter: new Date(Date.now() + validity.intermediateDays * DAY_MS),
      publicKey: keys.publicKey,
      signingKey: rootKeys.privateKey,
      signingAlgorithm: algorithms.root,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(rootKeys.publicKey),
      ],
    });
    const files = {
      rootCertificate: pem(root),
      rootKey: keyPem(rootKeys.privateKey),
      intermediateCertificate: pem(intermediate),
      intermediateKey: keyPem(keys.privateKey),
    };
    return new Hierarchy(name, files);
  }

  static async open(name: HierarchyName, files: HierarchyFiles): Promise<Hierarchy> {
    const [root, intermediate, key] = [
      new X509Certificate(files.rootCertificate),
      new X509Certificate(files.intermediateCertificate),
      createPrivateKey(files.intermediateKey),
    ];
    if (!intermediate.checkPrivateKey(key)) throw new Error(`the ${name} intermediate key does not belong to its certificate`);
    if (!root.checkPrivateKey(createPrivateKey(files.rootKey))) throw new Error(`the ${name} root key does not belong to its certificate`);
    if (!intermediate.verify(root.publicKey)) throw new Error(`the ${name} intermediate was not signed by its root`);
    return new Hierarchy(name, files);
  }

  /**
   * Signs one leaf, beside the event loop. Throws `BadCsr` when the request's own signature is false or its key is of the other hierarchy.
   */
  async issue(request: LeafRequest): Promise<IssuedLeaf> {
    const { spki, key } =
      request.csr === undefined ? await this.#makeLeafKey() : { spki: await acceptCsr(request.csr, this.name), key: undefined };
    const notBefore = wholeSeconds(request.notBefore ?? new Date(Date.now() - BACKDATE_MS));
    const wanted = request.notAfter ?? new Date(Date.now() + request.days * DAY_MS);
    const notAfter = wholeSeconds(wanted < this.#end ? wanted : this.#end);
    const number = serial();
    const { commonName, names, usages } = request;
    const der = await signLeaf(
      { serial: Buffer.from(number, 'hex'), notBefore, notAfter, commonName: commonName.slice(0, 64), names, usages, spki },
      this.#issuer,
    );
    const certificate = `-----BEGIN CERTIFICATE-----\n${der
      .toString('base64')
      .match(/.{1,64}/g)
      ?.join('\n')}\n-----END CERTIFICATE-----\n`;
    return {
      certificate,
      chain: certificate + this.files.intermediateCertificate,
      key,
      serial: number,
      thumbprint: hash('sha256', der, 'base64url'),
      notBefore,
      notAfter,
    };
  }

  async #makeLeafKey(): Promise<{ spki: Buffer; key: string }> {
    const { publicKey, privateKey } = this.name === 'pq' ? await newKeys('ml-dsa-65', {}) : await newKeys('ec', { namedCurve: 'P-256' });
    return { spki: publicKey.export({ type: 'spki', format: 'der' }), key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string };
  }
}

/** A CSR that cannot be honoured; the message says why in words for the requester. */
export class BadCsr extends Error {}

/** Which hierarchy signs a key of this kind (G-ACME-01). */
export function hierarchyOf(key: KeyObject): HierarchyName | undefined {
  switch (key.asymmetricKeyType as string) {
    case 'ml-dsa-44':
    case 'ml-dsa-65':
    case 'ml-dsa-87':
      return 'pq';
    case 'ed25519':
      return 'classical';
    case 'ec':
      return ['prime256v1', 'secp384r1'].includes(key.asymmetricKeyDetails?.namedCurve ?? '') ? 'classical' : undefined;
    case 'rsa':
      return (key.asymmetricKeyDetails?.modulusLength ?? 0) >= 2048 ? 'classical' : undefined;
    default:
      return undefined;
  }
}

/** Reads a CSR without trusting it: its names, its key's hierarchy and subject. Throws `BadCsr`. */
export async function readCsr(
  csr: string | Uint8Array,
): Promise<{ hierarchy: HierarchyName; commonName: string | undefined; names: string[]; publicKeyPem: string }> {
  const { hierarchy, commonName, names, publicKey } = await judged(csr);
  return { hierarchy, commonName, names: [...names], publicKeyPem: publicKey.export({ type: 'spki', format: 'pem' }) as string };
}

type Judged = CertificateRequest & { readonly hierarchy: HierarchyName };

const MOST_RECENT = 64;
/** Requests that were judged just now: who asks what one says has it signed next. */
const recent = new BoundedMap<string, Promise<Judged>>(MOST_RECENT);

function judged(csr: string | Uint8Array): Promise<Judged> {
  const key = typeof csr === 'string' ? csr : Buffer.from(csr).toString('base64');
  let known = recent.get(key);
  if (!known) {
    known = judge(csr);
    recent.set(key, known);
    known.catch(() => recent.delete(key));
  }
  return known;
}

async function judge(csr: string | Uint8Array): Promise<Judged> {
  const request = await readCertificateRequest(csr).catch((error: unknown) => {
    throw error instanceof BadRequest ? new BadCsr(error.message, { cause: error.cause }) : error;
  });
  const hierarchy = hierarchyOf(request.publicKey);
  if (hierarchy === undefined) throw new BadCsr('the key is of a kind or size this authority does not sign');
  if (!request.proven) throw new BadCsr('the CSR is not signed by the key it carries');
  return { ...request, hierarchy };
}

/** Makes a key and a CSR for it, PEM, on the requester's side: then no key leaves the machine (hardening H-02). */
export async function makeCsr(
  hierarchy: HierarchyName,
  commonName: string,
  names: readonly string[] = [],
): Promise<{ csr: string; key: string }> {
  const algorithm = ALGORITHMS[hierarchy].leaf;
  const keys = await makeKeys(algorithm);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: `CN=${commonName}`,
    keys,
    signingAlgorithm: algorithm,
    ...(names.length ? { extensions: [new x509.SubjectAlternativeNameExtension(names.map(generalName))] } : {}),
  });
  return { csr: request.toString('pem'), key: keyPem(keys.privateKey) };
}

/** x5t#S256 of a certificate: base64url SHA-256 of its DER (RFC 8705). */
export function thumbprintOf(certificate: string | Buffer | X509Certificate): string {
  const parsed = certificate instanceof X509Certificate ? certificate : new X509Certificate(certificate);
  return Buffer.from(parsed.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
}

async function acceptCsr(csr: string | Uint8Array, hierarchy: HierarchyName): Promise<Buffer> {
  const read = await judged(csr);
  if (read.hierarchy !== hierarchy) throw new BadCsr(`a key of the ${read.hierarchy} hierarchy cannot be signed by the ${hierarchy} one`);
  return read.spki;
}

const newKeys = promisify(generateKeyPair as never) as unknown as (
  type: string,
  options: object,
) => Promise<{ publicKey: KeyObject; privateKey: KeyObject }>;
const wholeSeconds = (at: Date) => new Date(Math.floor(at.getTime() / 1_000) * 1_000);
const serial = () => {
  const bytes = randomBytes(16);
  // A positive INTEGER: the top bit of a DER integer is its sign.
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes.toString('hex');
};
const makeKeys = (algorithm: Signing) =>
  crypto.subtle.generateKey(algorithm as EcKeyGenParams, true, ['sign', 'verify']) as Promise<CryptoKeyPair>;
const keyPem = (key: CryptoKey) => Keys.from(key).export({ type: 'pkcs8', format: 'pem' }) as string;
const pem = (certificate: x509.X509Certificate) => `${certificate.toString('pem')}\n`;
const generalName = (name: string) => {
  const [kind = '', ...rest] = name.split(':');
  const value = rest.join(':');
  return { type: kind === 'uri' || kind === 'url' ? 'url' : kind, value } as { type: 'dns' | 'ip' | 'url'; value: string };
};
