import { fleetCommand } from './fleet-command.ts';

export default fleetCommand(
  'platform start SERVICE … [--json]\n\n  Starts services of the catalog on this machine; all of them, or none where one may not.',
  {},
  [1, 64],
  async ({ words }, operator) => {
    const value = await operator.control<{ started: { service_type: string; instance_key: string }[] }>(
      'POST',
      '/v1/captain/start-services',
      { service_types: words },
    );
    return { value, lines: value.started.map(({ service_type, instance_key }) => `${service_type} starts at ${instance_key}`) };
  },
);
