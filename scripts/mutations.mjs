#!/usr/bin/env node
import { join } from 'node:path';
import { bundles, handOver, install, node26, nodeFlags, root } from './toolchain.mjs';

install();
const node = node26();
bundles(node);
process.exit(await handOver(node, [...nodeFlags, join(root, 'scripts', 'mutations', 'main.ts'), ...process.argv.slice(2)]));
