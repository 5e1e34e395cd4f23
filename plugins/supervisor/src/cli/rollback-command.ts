import { act, fleetCommand } from './fleet-command.ts';

export default fleetCommand(
  'platform rollback SERVICE|INSTANCE [--json]\n\n  Takes a running upgrade back, or replaces the instance by one of the release before.',
  {},
  [1, 1],
  ({ words }, operator) => act(operator, words[0] as string, 'rollback', {}, { first: true }),
);
