import type { AnyContract } from '@platform/sdk';
import { expect } from 'vitest';
import type { BootedHost } from '../boot.ts';
import type { DoorRequest } from '../calls/door-request.ts';
import type { WireAnswer } from '../calls/wire-request.ts';
import { ownTables } from './rows.ts';
import type { OpenTry } from './tries.ts';

/**
 * A request that is under way for as long as a test wants: its body stops in the middle, or the tables that its handler reads are locked.
 */
export class HeldRequest {
  readonly #release: () => void;
  readonly #answer: Promise<WireAnswer>;

  private constructor(release: () => void, answer: Promise<WireAnswer>) {
    [this.#release, this.#answer] = [release, answer];
  }

  /** Resolves when the service is at work on one of these; with nothing where none of them can be held. */
  static async begin(host: BootedHost<AnyContract>, tries: readonly OpenTry[]): Promise<HeldRequest | undefined> {
    for (const each of tries.filter(({ input }) => input.body !== undefined)) {
      const held = await HeldRequest.#byBody(host, each);
      if (held) return held;
    }
    const reads = tries.filter(({ route }) => route.method === 'GET');
    return reads.length > 0 ? HeldRequest.#byStore(host, reads) : undefined;
  }

  /** Lets it go on and reads the answer. */
  finish(): Promise<WireAnswer> {
    this.#release();
    return this.#answer;
  }

  static async #byBody(host: BootedHost<AnyContract>, each: OpenTry): Promise<HeldRequest | undefined> {
    const rest = Promise.withResolvers<void>();
    const text = JSON.stringify(each.input.body);
    async function* pieces() {
      yield Buffer.from(text.slice(0, 1));
      await rest.promise;
      yield Buffer.from(text.slice(1));
    }
    const answer = send(host, each, { headers: { 'content-type': 'application/json' }, body: pieces() });
    if (await isWaiting(host, answer, async () => true)) return new HeldRequest(rest.resolve, answer);
    rest.resolve();
    return undefined;
  }

  static async #byStore(host: BootedHost<AnyContract>, tries: readonly OpenTry[]): Promise<HeldRequest | undefined> {
    // A table at a time: what else the service does goes on.
    for (const table of await ownTables(host)) {
      const held = await HeldRequest.#byTable(host, table, tries);
      if (held) return held;
    }
    return undefined;
  }

  static async #byTable(host: BootedHost<AnyContract>, table: string, tries: readonly OpenTry[]): Promise<HeldRequest | undefined> {
    const { raw } = await host.pool();
    const [locked, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const lock = raw.begin(async tx => {
      await tx.unsafe(`lock table "${table}" in access exclusive mode`);
      locked.resolve();
      await rest.promise;
    });
    await Promise.race([locked.promise, lock]);
    const waits = async () => (await raw`select 1 from pg_locks where not granted and locktype = 'relation'`).length > 0;
    for (const each of tries) {
      const answer = send(host, each, {});
      if (await isWaiting(host, answer, waits)) return new HeldRequest(rest.resolve, answer);
    }
    rest.resolve();
    await lock;
    return undefined;
  }
}

function send(host: BootedHost<AnyContract>, { route, path, persona }: OpenTry, more: DoorRequest): Promise<WireAnswer> {
  const by = persona ? { persona } : {};
  const answer = host.fetch(persona ? `${path}?target_env_id=${persona.envId}` : path, { method: route.method, ...by, ...more });
  answer.catch(() => undefined);
  return answer;
}

/** Whether it stays unanswered while the service answers others and what it waits for is there. */
async function isWaiting(host: BootedHost<AnyContract>, answer: Promise<unknown>, waits: () => Promise<boolean>): Promise<boolean> {
  let isAnswered = false;
  answer.then(
    () => (isAnswered = true),
    () => (isAnswered = true),
  );
  const { app } = host.process.instances.get(host.manifest.id) ?? {};
  await expect.poll(async () => isAnswered || (app?.active === 1 && (await waits())), { interval: 10 }).toBe(true);
  for (let turns = 0; turns < 3 && !isAnswered; turns++) await host.fetch('/v1/health');
  return !isAnswered;
}
