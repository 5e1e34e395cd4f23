import { type Mend, mended } from './mended.ts';

/** What `postgres` 3.4.9 does to a service that runs for long. */
const MENDS: readonly Mend[] = [
  {
    // A function written where it becomes a member is born old in V8: each query, and with it its rows, stayed until the next full collection.
    file: '/postgres/src/query.js',
    from: '    this.resolve = x => (this.active = false, resolve(x))\n    this.reject = x => (this.active = false, reject(x))\n\n    this.active',
    to: '    const settle = x => (this.active = false, resolve(x))\n    const fail = x => (this.active = false, reject(x))\n    this.resolve = settle\n    this.reject = fail\n\n    this.active',
  },
  {
    // While at least one connection is idle the list of idle ones never empties: it grew by a place for every query, and every query searched all of it.
    file: '/postgres/src/queue.js',
    from: 'const index = xs.indexOf(x)\n      return index === -1\n        ? null\n        : (xs.splice(index, 1), x)',
    to: 'const at = xs.indexOf(x, index)\n      return at === -1\n        ? null\n        : (xs.splice(at, 1), x)',
  },
  {
    file: '/postgres/src/queue.js',
    from: 'xs[index - 1] = undefined\n',
    to: 'xs[index - 1] = undefined\n        index === 64 && (xs.splice(0, 64), index = 0)\n',
  },
];

const loaded = await mended(() => import('postgres'), MENDS);

/** The driver, for the kernel alone: nothing else imports it by its name, or it would be loaded before it is mended. */
export const driver = loaded.default;
