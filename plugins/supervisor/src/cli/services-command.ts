import { columns, fleetCommand, instances } from './fleet-command.ts';

export default fleetCommand(
  'platform services [--json]\n\n  Every instance of every service, by the tier in which it starts.',
  {},
  [0, 0],
  async (_, operator) => {
    const items = await instances(operator);
    const rows = items.map(({ start_priority, service_type, status, instance_key, pid, version, restarts, metrics }) => [
      start_priority,
      service_type,
      status,
      instance_key,
      pid,
      version,
      restarts,
      `${metrics.cpu_pct} %`,
      `${metrics.mem_mb} MB`,
      `${metrics.latency_ms} ms`,
    ]);
    return {
      value: items,
      lines: columns([['TIER', 'SERVICE', 'STATUS', 'INSTANCE', 'PROCESS', 'VERSION', 'RESTARTS', 'CPU', 'MEMORY', 'ANSWERS IN'], ...rows]),
    };
  },
);
