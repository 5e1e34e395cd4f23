import type * as ioredis from 'ioredis';
import { type Mend, mended } from './mended.ts';

const FILE = '/ioredis/built/Command.js';

/** What `ioredis` 6.0.0 does to every command of a service that runs for long: with it each lived, and its reply, until the next full collection. */
const MENDS: readonly Mend[] = [
  // A deleted member makes the object a hash table, and each command with a time limit lost one when it was answered.
  { file: FILE, from: 'delete this._commandTimeoutTimer', to: 'this._commandTimeoutTimer = undefined' },
  { file: FILE, from: 'delete this._blockingTimeoutTimer', to: 'this._blockingTimeoutTimer = undefined' },
  // A function written where it becomes a member is born old in V8: it is a variable's first.
  { file: FILE, from: 'this.reject = (err) => {', to: 'const fail = (err) => {' },
  { file: FILE, from: ';\n        });\n        this.promise = ', to: ';\n            this.reject = fail;\n        });\n        this.promise = ' },
];

const loaded = await mended(() => import('ioredis'), MENDS);

/** The key-value client, for the kernel alone: nothing else imports it by its name, or it would be loaded before it is mended. */
export const { Cluster, Redis } = loaded;
export type Redis = ioredis.Redis;
export type Cluster = ioredis.Cluster;
