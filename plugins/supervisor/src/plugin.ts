import { definePlugin, reply } from '@platform/sdk';
import { supervisor } from '../contract/index.ts';
import { ControlChannel } from './control/control-channel.ts';
import { controlHandlers } from './control/control-handlers.ts';
import { ControlGate } from './control/control-gate.ts';
import { Operations } from './control/operations.ts';
import { Views } from './control/views.ts';
import { Machines } from './machines/machines.ts';
import { provisionerOf } from './machines/provisioner-of.ts';
import { Supervisor } from './supervisor.ts';

export default definePlugin(supervisor, {
  migrations: new URL('../migrations/', import.meta.url),
  setup(ctx) {
    const watch = new Supervisor(ctx);
    const views = new Views(watch);
    const gate = new ControlGate(ctx);
    const operations = new Operations(watch, gate);
    const machines = new Machines(watch, gate, provisionerOf(watch));
    watch.onTick = () => machines.tick();
    ctx.processes.govern({
      boot: progress => watch.boot(progress),
      stop: async () => {
        await machines.leave().catch(() => undefined);
        await watch.stop();
      },
    });
    const routes = {
      readiness: async () => {
        const state = await views.readiness();
        return reply(state, { status: state.ready ? 200 : 503 });
      },
      ...controlHandlers({ watch, views, operations, machines, gate }),
    };
    const channel = new ControlChannel(ctx, routes);
    return {
      routes,
      ready: async () => {
        ctx.own(await ctx.processes.controlSocket(request => channel.answer(request)));
        for (const heard of await watch.today.listen(ctx.kv)) ctx.own(heard);
        watch.begin();
      },
    };
  },
});
