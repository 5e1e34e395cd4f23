import { get, Page, PageQuery, post, put, ServiceId, Type } from '@platform/sdk/contract';
import { RegisteredService, Registration } from '../schema/service.ts';
import { FoundService, LivingService } from '../schema/vertical-life.ts';

const ofService = { service: ServiceId };

/** What verticals register, and the life of each of their services (G-SYS-12). */
export const verticalRoutes = {
  listVerticals: get('/v1/verticals/services', {
    summary: 'Registered services',
    gate: 'sys:read',
    query: PageQuery,
    returns: Page(RegisteredService),
  }),
  registerVertical: post('/v1/verticals/register', {
    summary: 'Register a vertical',
    gate: 'sys:verticals:write',
    body: Registration,
    returns: Type.Object({ vertical: Type.String(), version: Type.String(), changed: Type.Boolean() }),
    problems: ['vertical_mismatch'],
    emits: ['platform:sys:vertical:registered', 'platform:sys:vertical:changed'],
  }),
  listLives: get('/v1/verticals/lives', {
    summary: 'Every service and where its life stands',
    gate: 'sys:read',
    returns: Page(LivingService),
    hidden: true,
  }),
  findVertical: put('/v1/verticals/lives/{service}', {
    params: ofService,
    summary: 'Say that a machine has the plugin of a service',
    gate: 'sys:verticals:found',
    body: FoundService,
    returns: LivingService,
    problems: ['service_taken'],
    emits: ['platform:sys:vertical:changed'],
    hidden: true,
  }),
  takeOutVertical: post('/v1/verticals/lives/{service}/take-out', {
    params: ofService,
    summary: 'Take a service of a vertical out of the platform',
    gate: 'sys:sys:admin',
    returns: LivingService,
    problems: ['vertical_not_found', 'service_required'],
    emits: ['platform:sys:vertical:changed'],
    hidden: true,
  }),
  bringBackVertical: post('/v1/verticals/lives/{service}/bring-back', {
    params: ofService,
    summary: 'Let a service that was taken out run again',
    gate: 'sys:sys:admin',
    returns: LivingService,
    problems: ['vertical_not_found', 'service_required'],
    emits: ['platform:sys:vertical:changed'],
    hidden: true,
  }),
};
