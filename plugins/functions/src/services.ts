import { Transpiler } from './components/transpiler.ts';
import type { FuncContext } from './context.ts';
import { Enablement } from './enablement.ts';
import { ExecutionRecords } from './execution/execution-records.ts';
import { ExecutionSlots } from './execution/execution-slots.ts';
import { Executor } from './execution/executor.ts';
import { HostCalls } from './execution/host-calls.ts';
import { EnvironmentLimits } from './execution/limits.ts';
import { Measurements } from './execution/measurements.ts';
import { Runner } from './execution/runner.ts';
import { GuestPool } from './isolation/guest-pool.ts';
import { CEILING_PAGES } from './modules/inspection.ts';
import { ModuleObjects } from './modules/module-objects.ts';
import { Modules } from './modules/modules.ts';
import { Programs } from './modules/programs.ts';
import { ModuleValidation } from './modules/validation.ts';

const HEAP_MB = 128;

/** The parts of the service, put together. */
export function servicesOf(ctx: FuncContext) {
  const pool = () =>
    ctx.own(
      new GuestPool({
        processes: ctx.config.processes,
        pages: CEILING_PAGES,
        heapMb: HEAP_MB,
        log: (fields, message) => ctx.log.warn(fields, message),
      }),
    );
  const pools = { core: pool(), component: pool() };
  const programs = new Programs(ctx.own(new Transpiler()));
  const enablement = new Enablement(ctx);
  const objects = new ModuleObjects(ctx);
  const modules = new Modules(ctx, objects, enablement);
  const limits = new EnvironmentLimits(ctx, enablement);
  const records = new ExecutionRecords(ctx);
  const calls = new HostCalls(ctx);
  const runner = new Runner(ctx, { objects, calls, programs, pools });
  const measurements = new Measurements(ctx);
  const executor = new Executor(ctx, { modules, records, runner, calls, limits, enablement, slots: new ExecutionSlots(ctx), measurements });
  return {
    enablement,
    executor,
    limits,
    measurements,
    modules,
    objects,
    pools,
    records,
    validation: new ModuleValidation(ctx, { modules, objects, limits, programs }),
  };
}
