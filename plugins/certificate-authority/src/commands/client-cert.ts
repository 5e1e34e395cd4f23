import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandOf, readArguments } from '@platform/sdk';

interface Asked {
  readonly name: string;
  readonly days: number | undefined;
  readonly csr: string | undefined;
  readonly out: string;
}
interface Minted {
  readonly certificate_id: string;
  readonly serial: string;
  readonly cn: string;
  readonly not_after: string;
  readonly thumbprint: string;
  readonly pem: string;
}

const USAGE = `platform ca client-cert NAME [--days N] [--csr FILE] [--out FOLDER]

  Makes a client certificate for the workload NAME, signed by the platform's own authority, and writes it as NAME.crt into FOLDER
  (this one unless you name another). Without --csr it makes the key too and writes it as NAME.key; the platform keeps no copy.

  --days N      how long it is valid: 1 to 3650, 365 unless you say otherwise, and never longer than the authority's own certificate
  --csr FILE    a PKCS#10 request: its key never leaves the machine that made it

  A file that is there already is not overwritten. Revoke a certificate on the page Certificates of the console.`;
const KEY = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n?/;

/** `platform ca client-cert`: a certificate for a workload, by an operator on the machine (CA-071). */
export const clientCert = commandOf<Asked>({
  usage: USAGE,

  read(args) {
    const { options, rest } = readArguments(args, ['days', 'csr', 'out']);
    const [name, ...more] = rest;
    if (name === undefined || !/^[a-z0-9-]+$/.test(name) || more.length > 0) return undefined;
    if (options.days !== undefined && !/^\d{1,4}$/.test(options.days)) return undefined;
    return { name, days: options.days === undefined ? undefined : Number(options.days), csr: options.csr, out: options.out ?? '.' };
  },

  async run(asked, operator) {
    const csr = asked.csr === undefined ? undefined : await readFile(asked.csr, 'utf8');
    const body = {
      service_name: asked.name,
      ...(asked.days === undefined ? {} : { validity_days: asked.days }),
      ...(csr === undefined ? {} : { csr }),
    };
    const { pem, cn, serial, not_after: until, thumbprint } = await operator.call<Minted>('acme', 'POST', '/v1/client-cert', { body });
    const key = KEY.exec(pem)?.[0];
    const path = (ending: string) => join(asked.out, `${asked.name}.${ending}`);
    if (key !== undefined) await writeFile(path('key'), key, { mode: 0o600, flag: 'wx' });
    await writeFile(path('crt'), pem.replace(KEY, ''), { mode: 0o644, flag: 'wx' });
    operator.print(`${cn} until ${until}: ${path('crt')}${key === undefined ? '' : ` and ${path('key')}`}`);
    operator.print(`serial ${serial}, x5t#S256 ${thumbprint}`);
    return 0;
  },
});
