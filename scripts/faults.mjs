#!/usr/bin/env node
import { join } from 'node:path';
import { handOver, install, node26, nodeFlags, root } from './toolchain.mjs';

install();
const node = node26();
process.exit(await handOver(node, [...nodeFlags, join(root, 'scripts', 'faults', 'main.ts'), ...process.argv.slice(2)]));
