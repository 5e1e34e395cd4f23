import { isIPv4 } from 'node:net';

/** Lower case, without one trailing dot. */
export const normalName = (name: string): string => name.toLowerCase().replace(/\.$/, '');

/** Whether the platform signs a name itself, by rule and never by lookup (doc3, certificate authority 3; G-ACME-02, C35). */
export function isLocalName(name: string, suffixes: readonly string[]): boolean {
  const bare = normalName(name).replace(/^\*\./, '');
  if (bare === 'localhost' || bare.endsWith('.localhost') || bare.endsWith('.local')) return true;
  if (isIPv4(bare)) return isPrivateIPv4(bare);
  if (bare === '::1') return true;
  return suffixes.some(suffix => bare === suffix || bare.endsWith(`.${suffix}`));
}

function isPrivateIPv4(address: string): boolean {
  const [first = 0, second = 0] = address.split('.').map(Number);
  return first === 127 || first === 10 || (first === 192 && second === 168) || (first === 172 && second >= 16 && second <= 31);
}

export const parseSuffixes = (setting: string): string[] =>
  setting
    .split(',')
    .map(entry => normalName(entry.trim()).replace(/^\.+/, ''))
    .filter(entry => entry !== '');
