import type { Machine } from '../../contract/schema/machine.ts';
import { columns, fleetCommand } from './fleet-command.ts';

export default fleetCommand(
  'platform machines [--json]\n\n  Every machine of the fleet, as it was last seen.',
  {},
  [0, 0],
  async (_, operator) => {
    const { items } = await operator.control<{ items: Machine[] }>('GET', '/v1/captain/machines');
    const rows = items.map(({ ip, base, cpu_pct, mem_pct, used_mb, saturated, sampled_at }) => [
      ip,
      base ? 'first' : '',
      `${cpu_pct} %`,
      `${mem_pct} %`,
      `${used_mb} MB`,
      saturated ? 'saturated' : '',
      sampled_at,
    ]);
    return { value: items, lines: columns([['MACHINE', '', 'CPU', 'MEMORY', 'USED', '', 'SEEN'], ...rows]) };
  },
);
