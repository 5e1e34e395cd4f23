import type { Ctx } from './context.ts';
import { accountParts } from './parts/account-parts.ts';
import { approvalParts } from './parts/approval-parts.ts';
import { clientParts } from './parts/client-parts.ts';
import { groundParts } from './parts/ground-parts.ts';
import { pageParts } from './parts/page-parts.ts';
import { signInParts } from './parts/sign-in-parts.ts';

/** Everything of this service, put together by hand (house 20). */
export async function servicesOf(ctx: Ctx) {
  const ground = await groundParts(ctx);
  const clients = { ...ground, ...clientParts(ctx, ground) };
  const made = { ...clients, ...pageParts(ctx, clients) };
  return { ...made, ...approvalParts(ctx, made), ...accountParts(ctx, made), ...signInParts(ctx, made) };
}
