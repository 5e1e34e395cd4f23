import { del, get, Id, Page, PageQuery, post, put, Type } from '@platform/sdk/contract';
import { Gateway, GatewayChange, GatewayTest, NewGateway, OneGatewayTest, TestResult } from '../schema/gateway.ts';
import { Channel } from '../schema/send.ts';

const ofGateway = { gateway_id: Id };

const administered = { gate: 'post:admin', env: 'target' } as const;
const refused = [
  'literal_credential',
  'credential_reserved',
  'gateway_url_invalid',
  'gateway_invalid',
  'platform_admin_required',
  'org_unknown',
] as const;

/** What messages leave by (G-POST-04). */
export const gatewayRoutes = {
  listGateways: get('/v1/gateways', {
    summary: 'Gateways that an environment can use',
    ...administered,
    query: { channel: Type.Optional(Channel), ...PageQuery },
    returns: Page(Gateway),
    problems: ['org_unknown'],
  }),
  createGateway: post('/v1/gateways', { summary: 'Add a gateway', ...administered, body: NewGateway, returns: Gateway, problems: refused }),
  testGateway: post('/v1/gateways/test', {
    summary: 'Try a gateway',
    ...administered,
    body: GatewayTest,
    returns: TestResult,
    problems: [...refused, 'gateway_not_found', 'recipient_invalid'],
  }),
  getGateway: get('/v1/gateways/{gateway_id}', {
    params: ofGateway,
    summary: 'One gateway',
    ...administered,
    returns: Gateway,
    problems: ['gateway_not_found', 'org_unknown'],
  }),
  updateGateway: put('/v1/gateways/{gateway_id}', {
    params: ofGateway,
    ifMatch: true,
    summary: 'Change a gateway',
    ...administered,
    body: GatewayChange,
    returns: Gateway,
    problems: [...refused, 'gateway_not_found'],
  }),
  deleteGateway: del('/v1/gateways/{gateway_id}', {
    params: ofGateway,
    ifMatch: true,
    summary: 'Remove a gateway',
    ...administered,
    problems: ['gateway_not_found', 'platform_admin_required', 'org_unknown'],
  }),
  tryGateway: post('/v1/gateways/{gateway_id}/test', {
    params: ofGateway,
    summary: 'Send a test',
    ...administered,
    body: OneGatewayTest,
    returns: TestResult,
    problems: ['gateway_not_found', 'recipient_invalid', 'org_unknown', 'platform_admin_required'],
    hidden: true,
  }),
} as const;
