import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isPrivateAddress } from '@platform/sdk';

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');

/** Where a host is, with private addresses or without. Throws in words when it is nowhere that may be reached. */
export async function addressOf(
  hostname: string,
  { privateOk }: { readonly privateOk: boolean },
): Promise<{ readonly address: string; readonly family: number }> {
  const found = await lookup(bare(hostname), { all: true }).catch(() => []);
  if (found.length === 0) throw new Error(`the host ${hostname} is not known`);
  const open = found.find(({ address }) => privateOk || !isPrivateAddress(address));
  if (!open) throw new Error(`the host ${hostname} has private addresses alone, which this gateway may not reach`);
  return open;
}

/** Whether a name can only mean a private host. */
export const looksPrivate = (hostname: string): boolean => {
  const host = bare(hostname);
  return isIP(host) !== 0
    ? isPrivateAddress(host)
    : host === 'localhost' || !host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa)$/i.test(host);
};
