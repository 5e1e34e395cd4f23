import { describeConformance } from '@platform/testing';
import registry from '../src/plugin.ts';
import { Directory } from './fixtures/directory.ts';

describeConformance(registry, { stubs: { identity: new Directory().identity } });
