import type { MessageContent } from '../../contract/schema/message.ts';
import type { Content } from '../messages/content.ts';
import type { Ctx } from '../context.ts';
import type { Look } from './mail-layout.ts';
import type { BroughtTemplates } from './brought-templates.ts';
import { type ContentType, contentTypeOf, oneLine, renderWords, type Vars } from './words-renderer.ts';

export interface FoundWords {
  readonly subject: string;
  readonly body: string;
  readonly content_type: ContentType;
  readonly locale: string;
}
export type Rendered = Omit<MessageContent, 'notification_id'> & { readonly why: string };

/** Exact, then the language alone, then English (G-POST-06). */
export function lookup(locale: string | undefined): string[] {
  const exact = (locale ?? 'en').replaceAll('_', '-');
  return [...new Set([exact, exact.split('-')[0] as string, 'en'].map(each => each.toLowerCase()))];
}

/** What messages say: words of the environment, else those that the service brought, else what the producer wrote. */
export class MessageWords {
  readonly #ctx: Ctx;
  readonly #brought: BroughtTemplates;

  constructor(ctx: Ctx, brought: BroughtTemplates) {
    this.#ctx = ctx;
    this.#brought = brought;
  }

  /** The words of a key in the first language there is, and where they came from. */
  async find(
    envId: string,
    key: string,
    locale: string | undefined,
  ): Promise<{ readonly words: FoundWords; readonly why: string } | undefined> {
    const wanted = lookup(locale);
    const rows = await this.#ctx.db.sql<FoundWords[]>`
      select subject, body, content_type, locale from templates where env_id = ${envId} and key = ${key}
        and lower(locale) = any(${wanted}::text[])
      order by array_position(${wanted}::text[], lower(locale)) limit 1`;
    const [own] = rows;
    if (own) return { words: own, why: `the environment's own template ${key} (${own.locale})` };
    const brought = this.#brought.all().get(key);
    if (!brought) return undefined;
    for (const each of wanted) {
      const found = Object.entries(brought.words).find(([language]) => language.toLowerCase() === each);
      if (found)
        return {
          words: { ...found[1], content_type: contentTypeOf(found[1].body), locale: found[0] },
          why: `the template ${key} (${found[0]}) that ${brought.service} brings`,
        };
    }
    return undefined;
  }

  /** A message as its reader sees it. A template that is missing or broken gives way to what the producer wrote. */
  async render(message: { readonly env_id: string; readonly user_id: string }, content: Content, look: Look): Promise<Rendered> {
    const { template, subject, body } = content;
    let why = 'no template was named';
    if (template) {
      const found = await this.find(message.env_id, template.key, template.locale);
      if (!found) why = `there is no template ${template.key} for ${lookup(template.locale).join(', ')}`;
      else {
        try {
          return { ...fill(found.words, varsOf(message, template.vars ?? {}, look, subject)), rendered_from: 'template', why: found.why };
        } catch (error) {
          why = `${found.why} could not be rendered: ${(error as Error).message}`;
          this.#ctx.log.warn(
            { env_id: message.env_id, template: template.key, reason: (error as Error).message },
            'a template could not be rendered; the words of its producer stand in',
          );
        }
      }
    }
    // Never HTML: what a producer wrote holds names that people chose.
    return {
      subject: oneLine(subject ?? template?.key ?? ''),
      body: body ?? '',
      content_type: 'text/plain',
      locale: template?.locale ?? 'en',
      rendered_from: 'literal',
      why,
    };
  }
}

/** Words with their values; the subject is plain text and one line in every case. */
export function fill({ subject, body, content_type, locale }: FoundWords, vars: Vars): Omit<Rendered, 'rendered_from' | 'why'> {
  const title = oneLine(renderWords(subject, vars, 'text/plain'));
  return { subject: title, body: renderWords(body, { ...vars, title }, content_type), content_type, locale };
}

/** The producer's values, and those with reserved names, which are ours. */
export const varsOf = (
  { env_id, user_id }: { readonly env_id: string; readonly user_id: string },
  vars: Vars,
  look: Look,
  title = '',
): Vars => ({
  ...vars,
  primary_color: look.primary_color ?? '',
  logo_url: look.logo_url ?? '',
  user_id,
  env_id,
  title,
});
