import type { Pending } from '../../contract/schema/machine.ts';
import { columns, fleetCommand } from './fleet-command.ts';

/** Over the network, as the host: the autoscaler's routes are not on the socket (SUP-102). */
export default fleetCommand(
  `platform approve [KEY] [--reject] [--json]

  Decides about a machine that the fleet asks for, or asks to give back. Without a key it lists what waits.`,
  { reject: { type: 'boolean' } },
  [0, 1],
  async ({ words, options }, operator) => {
    const [key] = words;
    if (key === undefined) {
      const { items } = await operator.call<{ items: Pending[] }>('captain', 'GET', '/v1/captain/autoscaler/pending');
      return {
        value: items,
        lines:
          items.length === 0
            ? ['Nothing waits for a decision.']
            : columns(items.map(pending => [pending.key, pending.reason, `until ${pending.expires_at}`])),
      };
    }
    const decision = options['reject'] === true ? 'reject' : 'approve';
    const value = await operator.call('captain', 'POST', '/v1/captain/autoscaler/approve', { body: { key, decision } });
    return { value, lines: [`${key}: ${decision}`] };
  },
);
