const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const CHARACTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', nbsp: ' ' };
const RIGHT_TO_LEFT: ReadonlySet<string> = new Set(['ar', 'fa', 'he', 'ur']);
const LINK = /https?:\/\/[^\s<>"']+/g;

export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, character => ENTITIES[character] as string);

export interface Look {
  readonly primary_color?: string | null;
  readonly logo_url?: string | null;
}
export interface LaidOut {
  readonly subject: string;
  readonly body: string;
  readonly type: 'text/plain' | 'text/html';
  readonly locale: string;
  readonly look: Look;
  readonly footer?: { readonly text: string; readonly link: string };
  /** As in a preview; the reader's own choice when absent. */
  readonly theme?: 'light' | 'dark';
}

const DARK =
  'body,.page{background:#16181d!important}.card{background:#20242c!important;color:#e8eaee!important}.card a{color:#9db8ff!important}.small,.small a{color:#9aa1ad!important}';

/**
 * A mail as HTML: one column that fits 320 px, in both themes, in the direction of its language. What is a whole page already stays as it
 * is.
 */
export function htmlMail({ subject, body, type, locale, look, footer, theme }: LaidOut): string {
  if (type === 'text/html' && /<html[\s>]/i.test(body)) return body;
  const color = /^#[0-9a-fA-F]{6}$/.test(look.primary_color ?? '') ? (look.primary_color as string) : '#3355cc';
  const dark = theme === 'dark' ? DARK : theme === 'light' ? '' : `@media (prefers-color-scheme:dark){${DARK}}`;
  const scheme = theme ?? 'light dark';
  const logo = look.logo_url?.startsWith('https://')
    ? `<img src="${escapeHtml(look.logo_url)}" alt="" height="40" style="display:block;height:40px;max-width:200px;border:0">`
    : '';
  const small = footer
    ? `<p class="small" style="margin:16px 0 0;font-size:12px;color:#667"><a href="${escapeHtml(footer.link)}" style="color:#667">${escapeHtml(footer.text)}</a></p>`
    : '';
  const dir = RIGHT_TO_LEFT.has(locale.slice(0, 2).toLowerCase()) ? 'rtl' : 'ltr';
  return [
    `<!doctype html><html lang="${escapeHtml(locale)}" dir="${dir}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">`,
    `<meta name="color-scheme" content="${scheme}"><title>${escapeHtml(subject)}</title><style>${dark}</style></head>`,
    '<body style="margin:0;background:#f3f4f7"><table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f3f4f7"><tr><td align="center" style="padding:24px 12px">',
    `<table role="presentation" width="100%" cellpadding="0" cellspacing="0" style="max-width:560px"><tr><td style="padding:0 0 16px">${logo}</td></tr>`,
    `<tr><td class="card" dir="${dir}" style="background:#fff;color:#1c2026;border-top:4px solid ${color};border-radius:8px;padding:24px;font:16px/1.5 system-ui,sans-serif;word-break:break-word">`,
    `<h1 style="margin:0 0 16px;font-size:20px;line-height:1.3">${escapeHtml(subject)}</h1>${
      type === 'text/html' ? body : paragraphs(body, color)
    }${small}</td></tr></table></td></tr></table></body></html>`,
  ].join('\n');
}

/** Paragraphs of a text; a link in it can be followed. */
function paragraphs(text: string, color: string): string {
  const linked = (line: string): string => {
    let [out, from] = ['', 0];
    for (const found of line.matchAll(LINK)) {
      out += escapeHtml(line.slice(from, found.index));
      const url = escapeHtml(found[0]);
      out += `<a href="${url}" dir="ltr" style="color:${color}">${url}</a>`;
      from = found.index + found[0].length;
    }
    return out + escapeHtml(line.slice(from));
  };
  return text
    .trim()
    .split(/\n{2,}/)
    .map(part => `<p style="margin:0 0 16px">${part.split('\n').map(linked).join('<br>')}</p>`)
    .join('\n');
}

/** The text beside an HTML body, for readers that show no HTML. */
export function textOf(html: string): string {
  return html
    .replaceAll(/<(style|script|head|title)\b[\s\S]*?<\/\1\s*>/gi, '')
    .replaceAll(/<a\b[^>]*?href="([^"]*)"[^>]*>([\s\S]*?)<\/a>/gi, (_, href: string, words: string) =>
      words.includes(href) ? words : `${words} (${href})`,
    )
    .replaceAll(/<li\b[^>]*>/gi, '- ')
    .replaceAll(/<br\s*\/?>|<\/(p|div|tr|h[1-6]|li|table)\s*>/gi, '\n')
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll(/&(?:#(\d{1,7})|(amp|lt|gt|quot|nbsp));/g, (_, code: string | undefined, name: string) =>
      code ? String.fromCodePoint(Math.min(Number(code), 0x10ffff)) : (CHARACTERS[name] as string),
    )
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/ ?\n ?/g, '\n')
    .replaceAll(/\n{3,}/g, '\n\n')
    .trim();
}

/** Links of a mail, as the mailbox of a development machine offers them. */
export const linksIn = (text: string): string[] => [...new Set([...text.matchAll(LINK)].map(([link]) => link))].slice(0, 20);
