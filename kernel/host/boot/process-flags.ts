import type { Placement } from '@platform/sdk';

/** What only the supervisor's own process needs: nobody else may reach libraries of the system. */
const OWN = new Set(['--experimental-ffi']);

/** What the process of one service is started with: this one's own flags, and what the placement says of the heap. */
export const processFlags = ({ heap_growth }: Placement): readonly string[] => [
  ...process.execArgv.filter(flag => !OWN.has(flag)),
  ...(heap_growth === undefined ? [] : [`--heap-growing-percent=${heap_growth}`]),
];
