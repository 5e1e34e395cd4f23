import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { debianPackages, scratchFolder, SMALL_SERVER, type StartPeer } from './supervisor-peer.ts';

/** runit: one `runsv` for the one service; a reload is its restart, as it has no other. */
export const runit: StartPeer = async port => {
  const home = join(debianPackages('runit'), 'usr', 'bin');
  const scratch = scratchFolder();
  const service = join(scratch.path, 'server');
  mkdirSync(service);
  writeFileSync(join(service, 'run'), `#!/bin/sh\nexec '${process.execPath}' '${SMALL_SERVER}' ${port}\n`, { mode: 0o755 });
  const child = spawn(join(home, 'runsv'), [service], { stdio: 'ignore' });
  const gone = once(child, 'exit');
  return {
    reload: async () => void (await promisify(execFile)(join(home, 'sv'), ['restart', service])),
    [Symbol.asyncDispose]: async () => {
      // Its word for: end the process, then yourself.
      child.kill('SIGTERM');
      await gone;
      scratch[Symbol.dispose]();
    },
  };
};
