/** The checks of a manifest, for everything that takes one in: the kernel before a start, the command line, the test kit, a store on an upload. */
export { checkManifest } from './checks.ts';
export { cronOf } from './cron.ts';
export { type Finding, formatFinding } from './finding.ts';
