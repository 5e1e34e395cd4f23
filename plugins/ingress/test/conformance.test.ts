import { describeConformance } from '@platform/testing';
import ingress from '../src/plugin.ts';

describeConformance(
  ingress,
  { environment: { PLATFORM_PROXY_HTTPS_PORT: '0', PLATFORM_PROXY_MANAGEMENT_PORT: '0' } },
  {
    unlisted: { findings: 'A finding is of a request at the edge; the suites of screening show them.' },
  },
);
