import { expect, test } from 'vitest';
import { takeSteps, trustSteps } from './trust-install.ts';

const linux = { platform: 'linux' as const, home: '/home/ada', asRoot: false, list: () => [], has: () => false };

test('CA-009 trust goes into the stores a machine has, its system’s and its browsers’, and nothing is tried where there is none', () => {
  expect(trustSteps('/r.crt', linux)).toEqual([]);
  const has = (path: string) =>
    ['/usr/local/share/ca-certificates', '/home/ada/.pki/nssdb/cert9.db', '/home/ada/.mozilla/firefox/x.default/cert9.db'].includes(path);
  const list = (path: string) => (path === '/home/ada/.mozilla/firefox' ? ['x.default', 'Crash Reports'] : []);
  expect(trustSteps('/r.crt', { ...linux, has, list }).map(({ command }) => command.join(' '))).toEqual([
    'sudo -n install -m 644 /r.crt /usr/local/share/ca-certificates/platform-root.crt',
    'sudo -n update-ca-certificates',
    'certutil -d sql:/home/ada/.pki/nssdb -A -t C,, -n platform-root -i /r.crt',
    'certutil -d sql:/home/ada/.mozilla/firefox/x.default -A -t C,, -n platform-root -i /r.crt',
  ]);
  expect(trustSteps('/r.crt', { ...linux, asRoot: true, has, list })[1]?.command).toEqual(['update-ca-certificates']);
  expect([
    trustSteps('/r.crt', { ...linux, platform: 'darwin' })[0]?.command[0],
    trustSteps('/r.crt', { ...linux, platform: 'win32' })[0]?.command[0],
  ]).toEqual(['security', 'certutil']);
});

test('CA-009 a step that cannot be taken is said, keeps no other from being taken, and throws nothing', () => {
  const outcomes = takeSteps([
    { store: 'a', command: ['no-such-program-here', 'x'] },
    { store: 'b', command: ['false'] },
    { store: 'c', command: ['true'] },
  ]);
  expect(outcomes).toEqual([
    { store: 'a', done: false, why: 'no-such-program-here is not installed' },
    { store: 'b', done: false, why: 'false ended with 1' },
    { store: 'c', done: true, why: '' },
  ]);
});
