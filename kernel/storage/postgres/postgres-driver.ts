import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';

/** SHA-256 of the driver's file with `patches/postgres+3.4.9.patch` on it. */
const PATCHED = '6df1f9366af6a947bbcc1e4fe6cf71e195f5a20e23357864af07d317b69d17e5';

/**
 * The driver, for the kernel alone. Its list of idle connections grew by a place with every query and every query searched all of it; the
 * patch keeps it as short as they are many. A process without the patch does not start: it would get slower with every hour.
 */
export const driver = patched(postgres);

function patched<T>(loaded: T): T {
  const file = fileURLToPath(new URL('./queue.js', import.meta.resolve('postgres')));
  const found = createHash('sha256').update(readFileSync(file)).digest('hex');
  if (found === PATCHED) return loaded;
  throw new Error('The Postgres driver is not the patched one. Run `npm ci`, which applies patches/postgres+3.4.9.patch.');
}
