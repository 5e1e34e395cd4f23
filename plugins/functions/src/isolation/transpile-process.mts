import { registerHooks } from 'node:module';
import type { Transpiled, TranspileOrder } from './wire.mts';

/* Turns one component into a program for the engine, behind the walls of a guest's process, and ends. */

// What jco has of WASI for Node starts a worker with files and sockets, which these walls forbid; what it has for browsers does nothing of
// the kind.
registerHooks({
  resolve: (name, context, next) =>
    next(
      name,
      name.startsWith('@bytecodealliance/preview2-shim')
        ? { ...context, conditions: context.conditions.filter(each => each !== 'node') }
        : context,
    ),
});
process.once('message', async ({ component, imports, exports }: TranspileOrder) => {
  const { transpile } = await import('@bytecodealliance/jco/component');
  const suspending = imports.filter(name => name !== 'log');
  let answer: Transpiled;
  try {
    const { files } = await transpile(component, {
      name: 'guest',
      noTypescript: true,
      noNodejsCompat: true,
      base64Cutoff: 0,
      instantiation: { tag: 'async' },
      asyncMode: suspending.length > 0 ? { tag: 'jspi', val: { imports: suspending, exports } } : { tag: 'sync' },
    });
    answer = { files };
  } catch (error) {
    answer = { fault: String(error instanceof Error ? error.message : error).slice(0, 500) };
  }
  process.send?.(answer, () => process.exit(0));
});
process.on('disconnect', () => process.exit(0));
