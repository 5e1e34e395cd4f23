import { BlockList } from 'node:net';

const PRIVATE = new BlockList();
for (const [network, prefix] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['127.0.0.0', 8],
  ['100.64.0.0', 10],
] as const)
  PRIVATE.addSubnet(network, prefix, 'ipv4');
PRIVATE.addSubnet('fc00::', 7, 'ipv6');
PRIVATE.addAddress('::1', 'ipv6');

/** Whether a peer is inside (G-PROXY-01): private, loopback and shared addresses, unique local ones of IPv6. */
export function isPrivate(address: string | undefined): boolean {
  const plain = (address ?? '').replace(/^::ffff:/, '');
  if (plain === '') return false;
  return PRIVATE.check(plain, plain.includes(':') ? 'ipv6' : 'ipv4');
}
