import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { peerPackage } from '../../bus/peers/peer-package.ts';
import { scratchFolder, SMALL_SERVER, type StartPeer } from './supervisor-peer.ts';

/** pm2 in its cluster mode, which is the one that reloads without a gap. */
export const pm2: StartPeer = async port => {
  const program = join(peerPackage('pm2', '7.0.4').directory, 'bin', 'pm2');
  const scratch = scratchFolder();
  const command = (...args: readonly string[]) =>
    promisify(execFile)(process.execPath, [program, ...args], { env: { ...process.env, PM2_HOME: scratch.path } });
  await command('start', SMALL_SERVER, '--name', 'server', '-i', '1', '--', String(port));
  return {
    reload: async () => void (await command('reload', 'server')),
    [Symbol.asyncDispose]: async () => {
      await command('kill');
      scratch[Symbol.dispose]();
    },
  };
};
