import { problems } from '../../contract/problems.ts';
import type { Ctx } from '../context.ts';

/** How a person is named at the pages: by the cookie of a sign-in, which no header of a client replaces. */
const CHALLENGE = 'Cookie realm="platform", form-action="/sign-in", cookie-name="__Host-platform-session"';

/** The same context, whose refusals of who asks say how to be known (RFC 9110 15.5.2). */
export function challenging(ctx: Ctx): Ctx {
  const problem: Ctx['problem'] = (code, more) =>
    ctx.problem(
      code,
      code in problems && problems[code as keyof typeof problems].status === 401
        ? { ...more, headers: { 'www-authenticate': CHALLENGE, ...more?.headers } }
        : more,
    );
  return Object.freeze({ ...ctx, problem });
}
