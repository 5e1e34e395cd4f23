#!/usr/bin/env node
import { join } from 'node:path';
import { handOver, install, node26, nodeFlags, root } from './toolchain.mjs';

install(() => undefined);
process.exit(await handOver(node26(), [...nodeFlags, join(root, 'kernel', 'main.ts'), ...process.argv.slice(2)]));
