import { describeConformance } from '@platform/testing';
import web from '../src/plugin.ts';

describeConformance(web);
