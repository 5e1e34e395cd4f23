import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(plugin, { stubs: { registry: { listServices: async ({ params }) => ({ env_id: params.env_id, services: [] }) } } });
