import type { Operator, PlatformCommand } from '@platform/sdk';
import type { Verification } from '../../contract/schema/audit.ts';

interface Chains {
  readonly items: readonly { readonly env_id: string; readonly position: number }[];
  readonly next_cursor: string | null;
}

const USAGE = `platform audit verify [--env ID]

  Proves that no row of the audit trail was changed, removed, inserted or reordered, and that it stands as the registry signed it.
  Every environment, or the one named. Names the first bad row of each. The exit code is 1 when there is one.

  The first line names the key that signs the trail: keep it, and see that it stays the same.`;

/** `platform audit verify`: walks every chain of the running platform, step by step. */
const command: PlatformCommand = {
  usage: USAGE,

  async run(args, operator) {
    const [verb, flag, envId, ...rest] = args;
    if (verb !== 'verify' || (flag !== undefined && (flag !== '--env' || envId === undefined || rest.length > 0))) {
      operator.print(USAGE);
      return 64;
    }
    const { algorithm, key_id: keyId } = await operator.call<{ algorithm: string; key_id: string }>('sys', 'GET', '/v1/audit/key');
    operator.print(`signed by ${algorithm} key ${keyId}`);
    let [chains, rows, broken] = [0, 0, 0];
    for await (const env of envId === undefined ? environments(operator) : [envId]) {
      const verdict = await verify(operator, env);
      chains += 1;
      rows += verdict.rows;
      if (verdict.status === 'broken') broken += 1;
      const cut = verdict.cut ? `, cut behind row ${verdict.cut.position} at ${verdict.cut.cut_at}` : '';
      if (verdict.fault) operator.print(`x ${env}  row ${verdict.fault.position}${verdict.fault.audit_id ? ` (${verdict.fault.audit_id})` : ''}: ${verdict.fault.detail} [${verdict.fault.kind}]`);
      else operator.print(`  ${env}  intact to row ${verdict.position}${cut}, head ${verdict.hash.slice(0, 16)}`);
    }
    operator.print(`${chains} ${chains === 1 ? 'environment' : 'environments'}, ${rows} rows, ${broken === 0 ? 'nothing was changed' : `${broken} broken`}`);
    return broken === 0 ? 0 : 1;
  },
};
export default command;

async function* environments(operator: Operator): AsyncGenerator<string> {
  for (let cursor: string | null = null; ; ) {
    const page: Chains = await operator.call('sys', 'GET', '/v1/audit/chains', { query: cursor ? { cursor } : {} });
    for (const { env_id: envId } of page.items) yield envId;
    if (page.next_cursor === null) return;
    cursor = page.next_cursor;
  }
}

async function verify(operator: Operator, envId: string): Promise<Verification> {
  let rows = 0;
  for (let cursor: string | null = null; ; ) {
    const step: Verification = await operator.call('sys', 'GET', '/v1/audit/verification', { query: { env_id: envId, ...(cursor ? { cursor } : {}) } });
    rows += step.rows;
    if (step.status !== 'unfinished') return { ...step, rows };
    cursor = step.next_cursor;
    operator.progress(`  ${envId}  ${step.position} of ${step.head} rows`);
  }
}
