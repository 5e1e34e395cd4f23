import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

const PRIVATE = new BlockList();
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(net, bits, 'ipv4');
for (const [net, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
  ['ff00::', 8],
  ['64:ff9b::', 96],
  ['2002::', 16],
] as const)
  PRIVATE.addSubnet(net, bits, 'ipv6');

/** Addresses that nobody outside reaches: loopback, private, link-local, shared, and what maps onto them. */
export function isPrivate(address: string): boolean {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped) return isPrivate(mapped);
  const family = isIP(address);
  return family === 0 || /^::ffff:/i.test(address) || PRIVATE.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '');

/** Where a host is, with private addresses or without. Throws in words when it is nowhere that may be reached. */
export async function addressOf(hostname: string, { privateOk }: { readonly privateOk: boolean }): Promise<{ readonly address: string; readonly family: number }> {
  const found = await lookup(bare(hostname), { all: true }).catch(() => []);
  if (found.length === 0) throw new Error(`the host ${hostname} is not known`);
  const open = found.find(({ address }) => privateOk || !isPrivate(address));
  if (!open) throw new Error(`the host ${hostname} has private addresses alone, which this gateway may not reach`);
  return open;
}

/** Whether a name can only mean a private host. */
export const looksPrivate = (hostname: string): boolean => {
  const host = bare(hostname);
  return isIP(host) !== 0 ? isPrivate(host) : host === 'localhost' || !host.includes('.') || /\.(localhost|local|internal|lan|home\.arpa)$/i.test(host);
};
