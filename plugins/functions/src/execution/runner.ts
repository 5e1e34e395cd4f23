import type { Cache } from '@platform/sdk';
import type { Execute, Limits, Module } from '../../contract/schema.ts';
import { HookResponse } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { GuestPool } from '../isolation/guest-pool.ts';
import type { Program } from '../isolation/wire.mts';
import { METER_VERSION } from '../metering/metered-module.ts';
import { PAGE_BYTES } from '../modules/inspection.ts';
import type { ModuleObjects } from '../modules/module-objects.ts';
import type { Programs } from '../modules/programs.ts';
import { type Attempt, attemptOf, inputOf } from './attempt.ts';
import type { CallRecord, HostCalls } from './host-calls.ts';
import { MAX_BYTES, MAX_CALLS } from './sizes.ts';

/** Components run code that was made of them, and have processes of their own, so that modules need not trust it. */
export type Pools = Readonly<Record<Program['kind'], GuestPool>>;
/** So often a module may break the engine in ten minutes before it is refused. */
const MAX_BREAKS = 3;
const BREAK_MS = 600_000;

/** Runs a module's hook once, in the pool, within the limits of its environment. */
export class Runner {
  readonly #ctx: FuncContext;
  readonly #objects: ModuleObjects;
  readonly #calls: HostCalls;
  readonly #pools: Pools;
  readonly #programs: Programs;
  readonly #made: Cache<Program>;
  readonly #broke = new Map<string, number[]>();
  readonly #responseFaults: (value: unknown) => readonly { message: string }[];

  constructor(ctx: FuncContext, parts: { objects: ModuleObjects; calls: HostCalls; programs: Programs; pools: Pools }) {
    [this.#ctx, this.#objects, this.#calls, this.#programs, this.#pools] = [ctx, parts.objects, parts.calls, parts.programs, parts.pools];
    this.#made = ctx.cache({ max: 128, ttl: 3_600_000 });
    this.#responseFaults = ctx.catalog.checkOf(HookResponse);
  }

  /** Throws `module_refused` while a module is known to break the engine. */
  requireSound({ wasm_hash }: Pick<Module, 'wasm_hash'>): void {
    const since = this.#ctx.clock.now().getTime() - BREAK_MS;
    if ((this.#broke.get(wasm_hash) ?? []).filter(at => at > since).length < MAX_BREAKS) return;
    throw this.#ctx.problem('module_refused', {
      detail: `The module ${wasm_hash} ended the engine ${MAX_BREAKS} times; it is tried again in ten minutes.`,
      headers: { 'retry-after': '600' },
    });
  }

  async attempt(module: Module, request: Execute, { executionId, limits }: { executionId: string; limits: Limits }): Promise<Attempt> {
    const target = { executionId, envId: module.env_id, ...this.#calls.offer(request, module.domain) };
    const calls: CallRecord[] = [];
    const pages = Math.floor((limits.memory_mib * 1_048_576) / PAGE_BYTES);
    const key = `${module.wasm_hash} ${METER_VERSION} ${pages}`;
    const program = await this.#made.get(key, async () =>
      this.#programs.make(await this.#objects.get(module.storage_key, module.wasm_hash), pages),
    );
    const { env_id, domain, product, module_id } = module;
    const parameters = { ...module.parameters, ...request.parameters };
    const outcome = await this.#pools[program.kind].run({
      module: key,
      program,
      hook: request.hook,
      input: inputOf(request, { execution_id: executionId, env_id, domain, product, module_id, parameters }),
      fuel: limits.fuel,
      timeoutMs: limits.timeout_ms,
      maxOutput: MAX_BYTES,
      maxCalls: MAX_CALLS,
      pages,
      call: async call => {
        const { record, ...answer } = await this.#calls.make(target, call);
        calls.push(record);
        return answer;
      },
    });
    if (outcome.broke) this.#blame(module.wasm_hash);
    return attemptOf(outcome, calls, request.protocol === 'hook' ? value => this.#responseFaults(value).length === 0 : undefined);
  }

  #blame(hash: string): void {
    const now = this.#ctx.clock.now().getTime();
    for (const [known, times] of this.#broke) if ((times.at(-1) ?? 0) <= now - BREAK_MS) this.#broke.delete(known);
    this.#broke.set(hash, [...(this.#broke.get(hash) ?? []).filter(at => at > now - BREAK_MS), now]);
    this.#ctx.log.warn({ module: hash }, 'a module broke the engine');
  }
}
