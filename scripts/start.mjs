#!/usr/bin/env node
import { join } from 'node:path';
import { bundles, handOver, install, node26, nodeFlags, root } from './toolchain.mjs';

const args = process.argv.slice(2);
if (args.includes('--help')) {
  process.stdout.write(`npm start [-- options]

  Installs what is missing, builds the browser bundles, starts everything and prints where to go.
  Ctrl-C drains and stops it all, databases included.

  --split             one process per service
  --trust-verticals   run verticals in the host process (development)
  --prefer-kv KIND    wasm or path: which embedded key-value store

  Settings come from the environment; \`npm run platform -- config\` lists them.
`);
} else {
  install();
  const node = node26();
  bundles(node);
  process.exit(await handOver(node, [...nodeFlags, join(root, 'kernel', 'main.ts'), 'run', ...args]));
}
