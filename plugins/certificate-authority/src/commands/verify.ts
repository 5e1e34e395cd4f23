import { readFile } from 'node:fs/promises';
import { commandOf, readArguments } from '@platform/sdk';
import { thumbprintOfChain } from '../record/log-verification.ts';

interface Verdict {
  readonly entries: number;
  readonly certificates: number;
  readonly head: string;
  readonly key_id: string;
  readonly faults: readonly { readonly kind: string; readonly detail: string }[];
}

const USAGE = `platform ca verify [FILE…]

  Proves the log of everything that the authority ever signed or revoked: no line was changed, removed, inserted or reordered, it ends
  where its signed head says, and every certificate that is kept is in it, as it was issued. With files, says of each certificate in
  them whether it is in the log. The exit code is 1 when something is wrong. Keep the line with the head: a later log that does not
  contain it was put back.`;

/** `platform ca verify`. */
export const verify = commandOf<{ files: readonly string[] }>({
  usage: USAGE,

  read: args => ({ files: readArguments(args, []).rest }),

  async run({ files }, operator) {
    operator.progress('  reading the log …');
    const { entries, certificates, head, key_id: key, faults } = await operator.call<Verdict>('acme', 'GET', '/v1/admin/log/verification');
    for (const { kind, detail } of faults) operator.print(`x ${detail} [${kind}]`);
    let unknown = 0;
    for (const file of files) {
      const thumbprint = thumbprintOfChain(await readFile(file, 'utf8'));
      const { items } =
        thumbprint === undefined
          ? { items: [] }
          : await operator.call<{ items: readonly { domain: string; thumbprint: string }[] }>('acme', 'GET', '/v1/admin/certificates', {
              query: { q: thumbprint },
            });
      const found = items.find(item => item.thumbprint === thumbprint);
      if (!found) unknown += 1;
      operator.print(
        found
          ? `  ${file}  ${found.domain}, in the log`
          : `x ${file}  ${thumbprint === undefined ? 'holds no certificate' : 'was never logged'}`,
      );
    }
    operator.print(`head ${head} signed by key ${key}`);
    operator.print(
      `${entries} lines, ${certificates} certificates, ${faults.length === 0 ? 'nothing was changed' : `${faults.length} faults`}`,
    );
    return faults.length + unknown === 0 ? 0 : 1;
  },
});
