import type { Alert } from '../fleet/alert-book.ts';
import { columns, fleetCommand } from './fleet-command.ts';

export default fleetCommand(
  'platform alerts [--json]\n\n  Services that were given up on and have not come back. The exit code is 1 when there is one.',
  {},
  [0, 0],
  async (_, operator) => {
    const { items } = await operator.control<{ items: Alert[] }>('GET', '/v1/captain/alerts');
    const rows = items.map(({ service_type, restarts, reason, at, log_path }) => [
      service_type,
      `${restarts} restarts`,
      reason,
      at,
      log_path,
    ]);
    return { value: items, lines: items.length === 0 ? ['Every service runs.'] : columns(rows), code: items.length === 0 ? 0 : 1 };
  },
);
