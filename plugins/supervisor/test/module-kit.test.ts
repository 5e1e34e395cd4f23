import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectKeyValue, openTestStores, type TestStores } from '@platform/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { keyValuePort } from '@platform/kernel/host/service/key-value-port';
import { variablesOf } from '../src/machines/environment-file.ts';
import { HostSamples } from '../src/machines/host-samples.ts';
import { ModuleKitProvisioner } from '../src/machines/module-kit-provisioner.ts';

let stores: TestStores;
let redis: Redis;
let kv: Awaited<ReturnType<typeof keyValuePort>>;
let close: () => Promise<void>;
const scratch = mkdtempSync(join(tmpdir(), 'platform-test-'));
beforeAll(async () => {
  stores = await openTestStores();
  redis = new Redis(stores.stores.keyValueUrl);
  const store = await connectKeyValue(stores.stores.keyValueUrl);
  kv = await keyValuePort(store);
  close = async () => {
    await kv[Symbol.asyncDispose]();
    await store.close();
  };
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis?.disconnect();
  await close?.();
  await stores?.[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true, force: true });
});

describe('a module kit', () => {
  const SECRET = 'DATABASE_PASSWORD=hunter2-and-more';
  const kits = fileURLToPath(new URL('../machines/', import.meta.url));
  const parts = (module: string, dataDir: string) => {
    mkdirSync(dataDir, { recursive: true });
    const envFile = join(dataDir, 'machine.env');
    writeFileSync(envFile, `${SECRET}\n`, { mode: 0o600 });
    const invite = async () => JSON.stringify({ enrollment: 'join-secret-text' });
    return {
      module,
      machine: { invite, ip: '10.0.0.1' },
      samples: new HostSamples(kv),
      dataDir,
      directory: join(dataDir, 'machines'),
      envFile,
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
    };
  };
  const everything = (folder: string): string =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && entry.name !== 'machine.env')
      .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
      .join('\n');

  test('SUP-057 is refused in one line where neither program is on PATH, and where the folder is none', () => {
    expect(new ModuleKitProvisioner({ ...parts(join(kits, 'container'), join(scratch, 'a')), path: scratch }).unable()).toBe(
      'Neither tofu nor terraform is on PATH: install OpenTofu 1.6 or newer, or set PLATFORM_CAPTAIN_MACHINE_KIT=local.',
    );
    expect(new ModuleKitProvisioner(parts('/nowhere', join(scratch, 'a'))).unable()).toContain(
      '/nowhere is no kit and no folder with a main.tf',
    );
    for (const kit of ['container', 'cloud', 'hypervisor'])
      for (const file of ['main.tf', 'variables.tf']) expect(existsSync(join(kits, kit, file))).toBe(true);
  });

  /** A program of the same words as OpenTofu, that notes what it is called with: where there is none, this is what shows what leaves us. */
  const program = (folder: string): string => {
    mkdirSync(folder, { recursive: true });
    const script = `#!/bin/sh
echo "$@" >> ${folder}/args
case "$1" in
  apply) printf '{"secret":"%s"}' "$TF_VAR_env_file" > terraform.tfstate
    env | grep -c '^TF_VAR_' >> ${folder}/inputs; printf '%s' "$TF_VAR_env_file" > ${folder}/told;;
  destroy) [ -s terraform.tfstate ] || exit 3; echo '{}' > terraform.tfstate;;
  output) echo '{"ip":{"value":"10.0.0.2"},"id":{"value":"m-1"}}';;
esac
echo "did $1"
`.replace('echo "did $1"\n', '[ "$1" = output ] || echo "did $1"\n');
    writeFileSync(join(folder, 'tofu'), script, { mode: 0o755 });
    return folder;
  };

  test('SUP-057 SUP-058 SUP-059 gives inputs by the environment alone, and keeps no secret in clear: in no argument, no log, no state', async () => {
    const [dataDir, bin] = [join(scratch, 'b'), program(join(scratch, 'bin'))];
    const provisioner = new ModuleKitProvisioner({ ...parts(join(kits, 'cloud'), dataDir), path: bin });
    expect(provisioner.unable()).toBeUndefined();
    expect(await provisioner.create('platform-2')).toBe('10.0.0.2');
    expect(readFileSync(join(bin, 'told'), 'utf8')).toContain(SECRET);
    expect(readFileSync(join(bin, 'inputs'), 'utf8').trim()).toBe('5');
    const kept = everything(dataDir);
    expect([
      kept.includes('hunter2'),
      kept.includes('join-secret-text'),
      readFileSync(join(bin, 'args'), 'utf8').includes('hunter2'),
    ]).toEqual([false, false, false]);
    expect(statSync(join(dataDir, 'machines', 'platform-2', 'state.sealed')).mode & 0o777).toBe(0o600);
    await provisioner.destroy('10.0.0.2');
    expect([
      existsSync(join(dataDir, 'machines', 'platform-2')),
      readdirSync(tmpdir()).filter(name => name.startsWith('platform-machine-')),
    ]).toEqual([false, []]);
    expect(readFileSync(join(bin, 'args'), 'utf8')).not.toContain('-out');
  });

  test('SUP-059 what a program says of a failure repeats no secret', async () => {
    const bin = join(scratch, 'failing');
    mkdirSync(bin);
    writeFileSync(join(bin, 'tofu'), `#!/bin/sh\n[ "$1" = init ] && exit 0\necho "could not: $TF_VAR_env_file" >&2\nexit 1\n`, {
      mode: 0o755,
    });
    const provisioner = new ModuleKitProvisioner({ ...parts(join(kits, 'cloud'), join(scratch, 'c')), path: bin });
    await expect(provisioner.create('platform-2')).rejects.toThrow(/could not: \[sensitive\]/);
  });

  test('SUP-058 an environment file is lines of names and values, and one that others can read is refused', async () => {
    expect(variablesOf('# a comment\nA_B=1\n\nC="two words"\nnot a line\n')).toEqual({ A_B: '1', C: 'two words' });
    const open = parts(join(kits, 'cloud'), join(scratch, 'd'));
    writeFileSync(open.envFile, SECRET, { mode: 0o644 });
    rmSync(open.envFile);
    writeFileSync(open.envFile, SECRET, { mode: 0o644 });
    await expect(new ModuleKitProvisioner({ ...open, path: join(scratch, 'bin') }).create('platform-2')).rejects.toThrow(
      'can be read by others',
    );
  });
});
