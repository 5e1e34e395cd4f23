import { setTimeout as delay } from 'node:timers/promises';
import type { Operator } from '@platform/sdk';
import type { UpgradeProgress } from '../../contract/schema/instance.ts';
import { act, fleetCommand, named } from './fleet-command.ts';

const LOOK_MS = 500;
const OVER: ReadonlySet<string> = new Set(['complete', 'aborted', 'rolled_back']);

export default fleetCommand(
  `platform upgrade SERVICE|INSTANCE [--release NAME] [--wait] [--json]

  Replaces an instance by one of the code on disk, or of a named release, without refusing a request.
  --wait   replaces every instance of the service, one after the other, and comes back when all is over; the exit code is 1 when one was
           aborted or rolled back`,
  { release: { type: 'string' }, wait: { type: 'boolean' } },
  [1, 1],
  async ({ words, options }, operator) => {
    const word = words[0] as string;
    const body = options['release'] === undefined ? {} : { version: options['release'] };
    if (options['wait'] !== true) return act(operator, word, 'upgrade', body, { first: true });
    const done: UpgradeProgress[] = [];
    for (const { instance_key } of await named(operator, word)) {
      const { value } = await act(operator, instance_key, 'upgrade', body);
      const progress = await over(operator, value[0]?.operation_id ?? '');
      done.push(progress);
      if (progress.phase !== 'complete') break;
    }
    return { value: done, lines: done.map(line), code: done.every(({ phase }) => phase === 'complete') ? 0 : 1 };
  },
);

const line = ({ service_type, phase, percent, message }: UpgradeProgress): string => `${service_type}  ${phase}  ${percent} %  ${message}`;

/** Every upgrade has an end of its own: so does this. */
async function over(operator: Operator, operation: string): Promise<UpgradeProgress> {
  for (let said = ''; ; ) {
    const { items } = await operator.control<{ items: UpgradeProgress[] }>('GET', '/v1/captain/upgrade-status');
    const mine = items.find(({ operation_id }) => operation_id === operation);
    if (mine && OVER.has(mine.phase)) return mine;
    if (mine && line(mine) !== said) operator.progress((said = line(mine)));
    await delay(LOOK_MS);
  }
}
