import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(plugin);
