import { enableCompileCache } from 'node:module';

/** Entry of a process that the supervisor starts: one service, told everything over a pipe. */
enableCompileCache();
const { runChild } = await import('./host/process/child/child-main.ts');
await runChild(process.argv.slice(2));
