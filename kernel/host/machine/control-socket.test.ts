import { type ChildProcess, execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { controlSocketPath } from './control-socket.ts';

const NOBODY = 65_534;
const ASK = `require('node:http').get({ socketPath: process.argv[1], path: '/' }, answer => answer.pipe(process.stdout))`;
const path = controlSocketPath({ dataDir: '/nowhere', environment: { PLATFORM_RUN_DIR: mkdtempSync(join(tmpdir(), 'platform-test-')) } });
let server: ChildProcess;
beforeAll(async () => {
  server = fork(fileURLToPath(new URL('./fixtures/control-socket-process.ts', import.meta.url)), [path], {
    execArgv: ['--experimental-ffi', '--disable-warning=ExperimentalWarning'],
  });
  await once(server, 'message');
});
afterAll(async () => {
  server.disconnect();
  await once(server, 'exit');
  rmSync(dirname(path), { recursive: true });
});

const isOpenToAll = (file: string): boolean => file === '/' || ((statSync(file).mode & 1) === 1 && isOpenToAll(dirname(file)));
const asked = async (uid?: number) =>
  JSON.parse((await promisify(execFile)(process.execPath, ['-e', ASK, path], uid === undefined ? {} : { uid })).stdout) as object;

test('SUP-102 the control socket is captain.sock in the run directory, and its file is for its owner alone', () => {
  expect([path.endsWith('/captain.sock'), statSync(path).mode & 0o777]).toEqual([true, 0o600]);
  expect(controlSocketPath({ dataDir: '/data', environment: {} })).toBe('/data/run/captain.sock');
});

test.runIf(process.platform === 'linux')('SUP-103 the system itself says who is at the other end', async () => {
  const own = process.getuid?.();
  expect(await asked()).toEqual({ uid: own, ownUid: own });
  // Only root can be somebody else, whom each folder above this Node has to let in.
  if (own !== 0 || !isOpenToAll(process.execPath)) return;
  chmodSync(dirname(path), 0o755);
  server.send('open');
  await once(server, 'message');
  expect(await asked(NOBODY)).toEqual({ uid: NOBODY, ownUid: 0 });
});
