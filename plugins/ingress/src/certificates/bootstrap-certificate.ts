import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import * as x509 from '@peculiar/x509';

const makeKeys = promisify(generateKeyPair);
const HOURS = 24;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** A key of the edge: P-256, which any client can read (G-PROXY-06). */
export async function edgeKey(): Promise<{ readonly pem: string; readonly pair: CryptoKeyPair; readonly algorithm: typeof ALGORITHM }> {
  const { privateKey, publicKey } = await makeKeys('ec', { namedCurve: 'P-256' });
  const pair = {
    privateKey: privateKey.toCryptoKey(ALGORITHM, true, ['sign']),
    publicKey: publicKey.toCryptoKey(ALGORITHM, true, ['verify']),
  } as CryptoKeyPair;
  return { pem: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, pair, algorithm: ALGORITHM };
}

/** What the edge shows until the authority has signed for it: self-signed, for 24 hours (ING-014). */
export async function bootstrapCertificate(
  name: string,
  now: Date,
): Promise<{ readonly key: string; readonly cert: string; readonly notAfter: Date }> {
  const { pem, pair, algorithm } = await edgeKey();
  const notAfter = new Date(now.getTime() + HOURS * 3_600_000);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name.slice(0, 64)}`,
    keys: pair,
    notBefore: new Date(now.getTime() - 60_000),
    notAfter,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: name }]),
      await x509.SubjectKeyIdentifierExtension.create(pair.publicKey),
    ],
  });
  return { key: pem, cert: certificate.toString('pem'), notAfter };
}
