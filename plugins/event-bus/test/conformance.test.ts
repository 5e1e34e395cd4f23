import { describeConformance } from '@platform/testing';
import plugin from '../src/plugin.ts';

describeConformance(plugin, {}, { unlisted: { deadLetterRows: 'An event is dead after its tries; the suite of dead letters shows it.' } });
