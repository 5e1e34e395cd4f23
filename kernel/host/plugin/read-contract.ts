import { reasonOf } from '@platform/sdk';
import { readPlugin } from './loader.ts';

/** Entry of a process that reads the contract of somebody else's plugin, inside the walls: prints its manifest, or what is wrong. */
const [directory = ''] = process.argv.slice(2);
const answer = await readPlugin(directory).then(
  ({ manifest }) => ({ manifest }),
  (error: unknown) => ({ fault: reasonOf(error) }),
);
process.stdout.write(JSON.stringify(answer));
