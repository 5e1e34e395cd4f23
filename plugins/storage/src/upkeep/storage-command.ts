import type { PlatformCommand } from '@platform/sdk';
import type { Integrity } from '../../contract/schema.ts';

const USAGE = `platform storage verify

  Reads every stored object of the running platform whole and compares it with its length and SHA-256 as they were when it was written.
  Names each that is missing, changed or cannot be read. The exit code is 1 when there is one.`;

/** `platform storage verify`: walks all objects, step by step. */
const command: PlatformCommand = {
  usage: USAGE,

  async run(args, operator) {
    if (args.join(' ') !== 'verify') {
      operator.print(USAGE);
      return 64;
    }
    let [checked, bytes, faults] = [0, 0, 0];
    for (let after: string | null = ''; after !== null; ) {
      const step: Integrity = await operator.call<Integrity>('storage', 'GET', '/v1/integrity', { query: after === '' ? {} : { after } });
      for (const { key, fault } of step.faults) operator.print(`x ${key} is ${fault}`);
      [checked, bytes, faults, after] = [checked + step.checked, bytes + step.bytes, faults + step.faults.length, step.next];
      operator.progress(`${checked} objects`);
    }
    operator.print(
      `${checked} objects, ${bytes} bytes: ${faults === 0 ? 'all as they were written' : `${faults} not as they were written`}`,
    );
    return faults === 0 ? 0 : 1;
  },
};
export default command;
