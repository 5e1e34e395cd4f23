import { describeConformance } from '@platform/testing';
import certificateAuthority from '../src/plugin.ts';

const noClient = 'A client makes accounts and orders by requests that it signs with a key of its own (RFC 8555); the suites show them.';
describeConformance(certificateAuthority, {}, { unlisted: { listAccounts: noClient, listOrders: noClient } });
