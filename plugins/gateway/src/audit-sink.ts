import { networkOf } from '@platform/sdk';
import type { Ctx } from './context.ts';
import { readCookie, SESSION_COOKIE } from './session/cookies.ts';
import type { Methods } from './door.ts';
import type { Sessions } from './session/sessions.ts';

const LINES_PER_MINUTE = 60;

/** Puts what a page reports into the log; no audit row is ever written (GWY-050). */
export function auditSink(ctx: Ctx, sessions: Sessions): Methods {
  const limit = ctx.limit({ name: 'audit', max: LINES_PER_MINUTE, seconds: 60 });
  return {
    POST: async ({ request, ip, json }) => {
      await limit.require(networkOf(ip));
      const report = await json({ of: 'any' });
      const session = await sessions.find(readCookie(request.headers.get('cookie') ?? undefined, SESSION_COOKIE)).catch(() => undefined);
      ctx.log.info({ report, user_id: session?.user_id }, 'reported by a browser');
      return new Response(null, { status: 204 });
    },
  };
}
