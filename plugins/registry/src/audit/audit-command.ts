import { commandOf, type Operator, readArguments } from '@platform/sdk';
import type { AuditKeyEntry, Verification } from '../../contract/schema/audit.ts';
import { type KeyEntry, succession } from './proof/key-succession.ts';
import { readReceipt, type Receipt, saveReceipt } from './proof/receipt-file.ts';

interface Chains {
  readonly items: readonly { readonly env_id: string; readonly position: number }[];
  readonly next_cursor: string | null;
}
interface Asked {
  readonly env: string | undefined;
  readonly since: string | undefined;
  readonly save: string | undefined;
}

const USAGE = `platform audit verify [--env ID] [--since FILE] [--save FILE]

  Proves that no row of the audit trail was changed, removed, inserted or reordered, and that it stands as the registry signed it.
  Every environment, or the one named. Names the first bad row of each. The exit code is 1 when there is one.

  --save FILE   writes a signed receipt of where every chain stands. Keep it where nobody reaches who reaches this machine.
  --since FILE  proves also that today's chains go on from that receipt, whatever was put back here since: the database, or all of
                the machine.

  Without a receipt it compares with what this machine saw signed, in the folder audit of its data folder. After you restored a backup on
  purpose, that folder and the database disagree: stop the platform, move the folder away, start it, and save a new receipt.

  The first line names the key that signs the trail: keep it, and see that it stays the same until you rotate it.`;

/** `platform audit verify`: walks every chain of the running platform, step by step. */
const command = commandOf<Asked>({
  usage: USAGE,

  read(args) {
    const { options, rest } = readArguments(args, ['env', 'since', 'save']);
    return rest.join() === 'verify' ? { env: options.env, since: options.since, save: options.save } : undefined;
  },

  async run(asked, operator) {
    const key = await operator.call<{ algorithm: string; key_id: string; keys: readonly AuditKeyEntry[]; witness_since: string }>(
      'sys',
      'GET',
      '/v1/audit/key',
    );
    const keys = succession(key.keys.map(entryOf));
    if (!keys) {
      operator.print('x the keys of the trail do not introduce each other');
      return 1;
    }
    operator.print(
      `signed by ${key.algorithm} key ${key.key_id}${
        keys.length > 1 ? `, after ${keys.length - 1} other${keys.length > 2 ? 's' : ''}` : ''
      }; witnessed here since ${key.witness_since}`,
    );
    const receipt = asked.since === undefined ? undefined : await readReceipt(asked.since, keys);
    if (receipt) operator.print(`goes on from the receipt of ${receipt.at}, signed by key ${receipt.keyId}:`);
    const broken = await verifyAll(operator, asked.env, receipt);
    if (asked.save !== undefined && broken === 0) {
      await saveReceipt(operator, asked.save);
      operator.print(`receipt in ${asked.save}`);
    }
    return broken === 0 ? 0 : 1;
  },
});
export default command;

const entryOf = ({ seq, key_id, public_key, since, by_previous, by_itself }: AuditKeyEntry): KeyEntry => ({
  seq,
  key_id,
  public_key,
  since: since === null ? 0 : Date.parse(since),
  by_previous,
  by_itself: by_itself ?? '',
});

/** @returns how many are broken. */
async function verifyAll(operator: Operator, only: string | undefined, receipt: Receipt | undefined): Promise<number> {
  let [chains, rows, broken] = [0, 0, 0];
  for await (const env of only === undefined ? environments(operator, receipt) : [only]) {
    const verdict = await verify(operator, env, receipt?.heads.get(env));
    chains += 1;
    rows += verdict.rows;
    if (verdict.status === 'broken') broken += 1;
    const cut = verdict.cut ? `, cut behind row ${verdict.cut.position} at ${verdict.cut.cut_at}` : '';
    if (verdict.fault)
      operator.print(
        `x ${env}  row ${verdict.fault.position}${
          verdict.fault.audit_id ? ` (${verdict.fault.audit_id})` : ''
        }: ${verdict.fault.detail} [${verdict.fault.kind}]`,
      );
    else operator.print(`  ${env}  intact to row ${verdict.position}${cut}, head ${verdict.hash.slice(0, 16)}`);
  }
  operator.print(
    `${chains} ${chains === 1 ? 'environment' : 'environments'}, ${rows} rows, ${
      broken === 0 ? 'nothing was changed' : `${broken} broken`
    }`,
  );
  return broken;
}

/** Those of the platform, and those that only the receipt knows. */
async function* environments(operator: Operator, receipt: Receipt | undefined): AsyncGenerator<string> {
  const kept = new Set(receipt?.heads.keys());
  for (let cursor: string | null = null; ; ) {
    const page: Chains = await operator.call('sys', 'GET', '/v1/audit/chains', { query: cursor ? { cursor } : {} });
    for (const { env_id: envId } of page.items) {
      kept.delete(envId);
      yield envId;
    }
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  yield* kept;
}

async function verify(operator: Operator, envId: string, since: string | undefined): Promise<Verification> {
  let rows = 0;
  for (let cursor: string | null = null; ; ) {
    const step: Verification = await operator.call('sys', 'GET', '/v1/audit/verification', {
      query: { env_id: envId, ...(cursor ? { cursor } : {}), ...(since ? { since } : {}) },
    });
    rows += step.rows;
    if (step.status !== 'unfinished') return { ...step, rows };
    cursor = step.next_cursor;
    operator.progress(`  ${envId}  ${step.position} of ${step.head} rows`);
  }
}
