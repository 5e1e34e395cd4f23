import { act, fleetCommand } from './fleet-command.ts';

export default fleetCommand(
  'platform restart SERVICE|INSTANCE [--json]\n\n  Restarts every instance that the word names. Requests under way are finished first.',
  {},
  [1, 1],
  ({ words }, operator) => act(operator, words[0] as string, 'restart', {}),
);
