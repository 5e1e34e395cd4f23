import type { RawExchange } from '@platform/sdk';
import { escapeHtml } from '../templates/mail-layout.ts';
import type { Ctx } from '../context.ts';
import type { Preferences } from './preferences.ts';

const CATEGORY = 'marketing';
const PURPOSE = 'post:unsubscribe';
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
};

/** Links that end marketing mail: GET shows a button, POST takes effect, from the page or from a mail program (RFC 8058, H-08). */
export class Unsubscribe {
  readonly #ctx: Ctx;
  readonly #preferences: Preferences;

  constructor(ctx: Ctx, preferences: Preferences) {
    this.#ctx = ctx;
    this.#preferences = preferences;
  }

  /** Where the mail of a message is ended; the link counts as long as the message is kept. */
  linkFor(notificationId: string): string {
    const { platform } = this.#ctx;
    return `${platform.publicOrigin(platform.host('post'))}/v1/unsubscribe/${notificationId}.${this.#ctx.keys.content.fingerprint(PURPOSE, notificationId)}`;
  }

  async answer({ params, request }: RawExchange): Promise<Response> {
    const [id = '', mark = ''] = (params['token'] ?? '').split('.');
    const known = /^[0-9a-f-]{36}$/.test(id) && this.#ctx.keys.content.isFingerprint(PURPOSE, id, mark);
    const [row] = known
      ? await this.#ctx.db.sql<{ env_id: string; user_id: string }[]>`select env_id, user_id from messages where notification_id = ${id}`
      : [];
    if (!row) return page(404, 'This link is not valid any more.', 'Follow the link of a newer message.');
    if (request.method === 'GET' || request.method === 'HEAD')
      return page(200, 'Stop marketing mail?', 'Messages still come to your inbox.', true);
    if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'GET, POST' } });
    await request.body?.cancel();
    await this.#preferences.mute(row, CATEGORY);
    return page(200, 'You get no marketing mail any more.', 'You can change this in your preferences.');
  }
}

function page(status: number, title: string, text: string, asks = false): Response {
  const button = asks ? '<form method="post"><button style="font:inherit;padding:.6rem 1rem">Stop</button></form>' : '';
  const body = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>${escapeHtml(title)}</title><body style="font:16px/1.5 system-ui;max-width:32rem;margin:4rem auto;padding:0 1rem"><h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p>${button}</body></html>`;
  return new Response(body, { status, headers: HEADERS });
}
