import type { RequestOf } from '@platform/sdk';
import type { functions } from '../../contract/index.ts';
import type { Validation } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import type { EnvironmentLimits } from '../execution/limits.ts';
import { MAX_BYTES } from '../execution/sizes.ts';
import { GuestPool } from '../isolation/guest-pool.ts';
import { Crowded, Turns } from '../isolation/turns.ts';
import type { Program } from '../isolation/wire.mts';
import { ModuleFault } from '../metering/byte-reader.ts';
import { inspect, PAGE_BYTES } from './inspection.ts';
import type { ModuleObjects } from './module-objects.ts';
import type { Modules } from './modules.ts';
import type { Programs } from './programs.ts';

/** What the engine may take for a module it sees for the first time. */
const FIRST_MS = 5_000;
/** Trials at once in this process, each with a process of its own; more wait, and more than these are refused. */
const [AT_ONCE, WAITING] = [4, 32];

/**
 * A dry run: the module is compiled and its hook tried in a process of its own, which nobody else uses and which is killed when it takes
 * too long (FUN-009).
 */
export class ModuleValidation {
  readonly #ctx: FuncContext;
  readonly #modules: Modules;
  readonly #objects: ModuleObjects;
  readonly #limits: EnvironmentLimits;
  readonly #programs: Programs;
  readonly #turns = new Turns(AT_ONCE, WAITING);

  constructor(ctx: FuncContext, parts: { modules: Modules; objects: ModuleObjects; limits: EnvironmentLimits; programs: Programs }) {
    [this.#ctx, this.#modules, this.#objects, this.#limits, this.#programs] = [
      ctx,
      parts.modules,
      parts.objects,
      parts.limits,
      parts.programs,
    ];
  }

  async validate({ env, params, body, caller }: RequestOf<typeof functions, 'validateModule'>): Promise<Validation> {
    const module = await this.#modules.owned(env, params.module_id, caller);
    const bytes = await this.#objects.get(module.storage_key, module.wasm_hash);
    const limits = await this.#limits.of(env);
    const pages = Math.floor((limits.memory_mib * 1_048_576) / PAGE_BYTES);
    const none = { exports: [], imports: [], fuel_used: 0, memory_bytes: 0 };
    let seen: ReturnType<typeof inspect>;
    let program: Program;
    try {
      seen = inspect(bytes, module.hooks, pages);
      program = await this.#programs.make(bytes, pages);
    } catch (error) {
      if (error instanceof Crowded) throw this.#crowded();
      if (!(error instanceof ModuleFault)) throw error;
      return { valid: false, diagnostics: [{ severity: 'error', code: error.code, message: error.message }], ...none };
    }
    const hook = body.hook ?? (module.hooks[0] as string);
    const told = { exports: [...seen.exports], imports: [...seen.imports] };
    if (!module.hooks.includes(hook))
      return {
        valid: false,
        diagnostics: [{ severity: 'error', code: 'hook_missing', message: `The module has no hook ${hook}.` }],
        ...none,
        ...told,
      };
    const outcome = await this.#trial(program, { hook, pages, fuel: limits.fuel, context: body.context ?? {} });
    const diagnostics = diagnosticsOf(outcome, body.context !== undefined);
    const valid = diagnostics.every(({ severity }) => severity !== 'error');
    if (valid) await this.#modules.validated(module, caller);
    return { valid, diagnostics, ...told, fuel_used: outcome.fuelUsed, memory_bytes: outcome.memoryBytes };
  }

  async #trial(program: Program, { hook, pages, fuel, context }: { hook: string; pages: number; fuel: number; context: object }) {
    using _ = await this.#turns.take().catch(() => {
      throw this.#crowded();
    });
    await using pool = new GuestPool({ processes: 1, pages, heapMb: 128, log: (fields, message) => this.#ctx.log.info(fields, message) });
    const input = Buffer.from(JSON.stringify(context));
    // Nobody is called in a dry run.
    const call = async () => ({ fuel: 0 });
    return await pool.run({
      module: 'trial',
      program,
      hook,
      input,
      fuel,
      timeoutMs: FIRST_MS,
      maxOutput: MAX_BYTES,
      maxCalls: 1,
      pages,
      call,
    });
  }

  #crowded(): Error {
    return this.#ctx.problem('too_many_executions', {
      detail: 'Many modules are being tried. Try again in a moment.',
      headers: { 'retry-after': '5' },
    });
  }
}

/**
 * What a trial says of a module. One that wants another input than it was given is no bad module: that is a warning, unless the input was
 * given for it.
 */
function diagnosticsOf({ fault, broke, durationMs }: Awaited<ReturnType<GuestPool['run']>>, chosen: boolean): Validation['diagnostics'] {
  if (broke || fault?.code === 'execution_timeout')
    return [{ severity: 'error', code: 'engine_trouble', message: fault?.detail ?? 'The engine did not come to an end with it.' }];
  if (fault?.code === 'callback_failed')
    return [
      { severity: 'info', code: 'calls_host', message: 'The trial ended at the first call of the host, which a dry run does not make.' },
    ];
  if (fault?.code === 'fuel_exhausted' || fault?.code === 'memory_exceeded')
    return [{ severity: 'error', code: fault.code, message: fault.detail }];
  if (fault)
    return [
      {
        severity: chosen ? 'error' : 'warning',
        code: fault.code,
        message: `${fault.detail} Give the hook a context it understands to try it further.`,
      },
    ];
  return durationMs > FIRST_MS / 2 ? [{ severity: 'warning', code: 'slow', message: `The trial took ${Math.round(durationMs)} ms.` }] : [];
}
