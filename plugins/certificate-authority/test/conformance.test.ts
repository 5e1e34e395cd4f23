import { describeConformance } from '@platform/testing';
import certificateAuthority from '../src/plugin.ts';

describeConformance(certificateAuthority);
