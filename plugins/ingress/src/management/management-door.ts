import type { IncomingMessage, ServerResponse } from 'node:http';
import { isProblem } from '@platform/sdk';
import { BodyRefused, ClientGone, type BodyIntake } from '../body-intake.ts';
import type { Ctx } from '../context.ts';
import { refuse, type Refusal } from '../refusal.ts';
import { backendHeaders, correlationOf } from '../request-headers.ts';

/**
 * The management plane over plain HTTP, for peers inside alone (C28): the same routes and the same gates as on the mesh, which it is
 * forwarded to; `/openapi.json` is `null` here (G-PROXY-05). A token that is bound to a certificate cannot be proven on this port, and is
 * refused there.
 */
export class ManagementDoor {
  readonly #ctx: Ctx;
  readonly #bodies: BodyIntake;

  constructor(ctx: Ctx, bodies: BodyIntake) {
    this.#ctx = ctx;
    this.#bodies = bodies;
  }

  async answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const correlationId = correlationOf(req, () => this.#ctx.platform.newId());
    const { url = '/', method } = req;
    const [path = '/'] = url.split('?');
    if (path === '/openapi.json' && (method === 'GET' || method === 'HEAD'))
      return void res
        .writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': '4' })
        .end(method === 'HEAD' ? undefined : 'null');
    if (!path.startsWith('/v1/'))
      return refuse(res, { status: 404, code: 'not_found', title: 'The management plane is under /v1' }, correlationId);
    try {
      const ip = req.socket.remoteAddress ?? '';
      const body = await this.#bodies.take(req, ip, refusal => refuse(res, refusal, correlationId));
      const mapping = { hostname: this.#ctx.platform.host('proxy'), service: 'proxy', env_id: null, app_instance_id: null };
      const headers: Record<string, string> = {
        ...backendHeaders(req, mapping, { correlationId, ip: ip.replace(/^::ffff:/, '') }),
        'x-forwarded-proto': 'http',
      };
      if (body && !body.rest) headers['content-length'] = String(body.begun.byteLength);
      await this.#ctx.backends.forward('proxy', { req, res, headers, body: body && (body.rest ?? body.begun), party: ip });
    } catch (error) {
      if (res.destroyed || error instanceof ClientGone) return void res.destroy();
      refuse(res, named(error), correlationId);
    }
  }
}

function named(error: unknown): Refusal {
  if (error instanceof BodyRefused) return error.refusal;
  if (isProblem(error)) return { status: error.status, code: error.code, title: error.title, detail: error.detail, headers: error.headers };
  return { status: 502, code: 'backend_unreachable', title: 'The management plane did not answer' };
}
