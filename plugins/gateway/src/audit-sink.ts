import type { Ctx } from './context.ts';
import { readCookie, SESSION_COOKIE } from './session/cookies.ts';
import { type Methods, readJson } from './door.ts';
import { RateLimit } from './rate-limit.ts';
import type { Sessions } from './session/sessions.ts';

const LINES_PER_MINUTE = 60;
const LIMIT = 16_384;

/** Puts what a page reports into the log; no audit row is ever written (GWY-050). */
export function auditSink(ctx: Ctx, sessions: Sessions): Methods {
  const limit = new RateLimit(ctx, 'audit', LINES_PER_MINUTE);
  return {
    POST: async ({ request, ip }) => {
      await limit.take(ip);
      const report = await readJson(ctx, request, LIMIT);
      const session = await sessions.find(readCookie(request.headers.get('cookie') ?? undefined, SESSION_COOKIE)).catch(() => undefined);
      ctx.log.info({ report, user_id: session?.user_id }, 'reported by a browser');
      return new Response(null, { status: 204 });
    },
  };
}
