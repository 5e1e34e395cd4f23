import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(plugin, {
  stubs: { workflow: { registerHandler: async () => ({}) as never }, scheduler: { putSchedule: async () => ({}) as never } },
});
