import { setTimeout as delay } from 'node:timers/promises';
import type { UpgradeProgress } from '../../contract/schema/instance.ts';
import { act, fleetCommand } from './fleet-command.ts';

const LOOK_MS = 500;
const OVER: ReadonlySet<string> = new Set(['complete', 'aborted', 'rolled_back']);

export default fleetCommand(
  `platform upgrade SERVICE|INSTANCE [--release NAME] [--wait] [--json]

  Replaces an instance by one of the code on disk, or of a named release, without refusing a request.
  --wait   comes back when the upgrade is over; the exit code is 1 when it was aborted or rolled back`,
  { release: { type: 'string' }, wait: { type: 'boolean' } },
  [1, 1],
  async ({ words, options }, operator) => {
    const begun = await act(operator, words[0] as string, 'upgrade', options['release'] === undefined ? {} : { version: options['release'] });
    if (options['wait'] !== true) return begun;
    const ids = new Set(begun.value.map(({ operation_id }) => operation_id));
    let said = '';
    for (;;) {
      const { items } = await operator.control<{ items: UpgradeProgress[] }>('GET', '/v1/captain/upgrade-status');
      const mine = items.filter(({ operation_id }) => ids.has(operation_id));
      const lines = mine.map(({ service_type, phase, percent, message }) => `${service_type}  ${phase}  ${percent} %  ${message}`);
      if (lines.join() !== said) for (const line of lines) operator.progress(line);
      said = lines.join();
      if (mine.length === ids.size && mine.every(({ phase }) => OVER.has(phase))) return { value: mine, lines, code: mine.every(({ phase }) => phase === 'complete') ? 0 : 1 };
      await delay(LOOK_MS);
    }
  },
);
