import type { Ctx } from './context.ts';
import { applicationParts } from './parts/application-parts.ts';
import { groundParts } from './parts/ground-parts.ts';
import { memberParts } from './parts/member-parts.ts';
import { tenantParts } from './parts/tenant-parts.ts';

/** Everything of this service, put together by hand (house 20). */
export async function servicesOf(ctx: Ctx) {
  const ground = await groundParts(ctx);
  return { ...ground, ...tenantParts(ctx, ground), ...applicationParts(ctx, ground), ...memberParts(ctx, ground) };
}
