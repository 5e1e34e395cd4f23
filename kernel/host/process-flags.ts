import type { Placement } from '@platform/sdk';

/** What the process of one service is started with: this one's own flags, and what the placement says of the heap. */
export const processFlags = ({ heap_growth }: Placement): readonly string[] => [...process.execArgv, ...(heap_growth === undefined ? [] : [`--heap-growing-percent=${heap_growth}`])];
