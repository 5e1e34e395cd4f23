import type { RequestOf } from '@platform/sdk';
import type { TestResult } from '../../contract/schema/gateway.ts';
import type { Preview, Template, TemplateWords } from '../../contract/schema/template.ts';
import type { ChosenGateways } from '../gateways/chosen-gateways.ts';
import type { GatewayTests } from '../gateways/gateway-tests.ts';
import { isOneAddress } from '../people/mail-address.ts';
import type { Tenants } from '../people/tenants.ts';
import type { Mailbox } from '../delivery/mailbox.ts';
import { mailOf } from '../delivery/mail-of.ts';
import { type Contract, type Ctx, nowOf } from '../context.ts';
import type { BroughtTemplates } from './brought-templates.ts';
import { htmlMail, textOf } from './mail-layout.ts';
import { fill, type FoundWords, type MessageWords, varsOf } from './message-words.ts';
import { contentTypeOf, templateFault, type Vars } from './words-renderer.ts';

interface Row extends FoundWords {
  readonly key: string;
  readonly version: number;
  readonly updated_at: string;
}
interface Parts {
  readonly words: MessageWords;
  readonly brought: BroughtTemplates;
  readonly tenants: Tenants;
  readonly tests: GatewayTests;
  readonly chosen: ChosenGateways;
  readonly mailbox: Mailbox;
}
const DEFAULT_LIMIT = 50;

/** Templates of environments, beside those that services bring (G-POST-06). */
export class Templates {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** The environment's own, and what services bring where it has none; one page by key and language. */
  async list({ query, env }: RequestOf<Contract, 'listTemplates'>) {
    const { sql } = this.#ctx.db;
    const brought = [...this.#parts.brought.all().values()].flatMap(({ key, title, words }) =>
      Object.entries(words).map(([locale, { subject, body }]) => ({ key, locale, title, subject, body })),
    );
    const titles = Object.fromEntries([...this.#parts.brought.all().values()].map(({ key, title }) => [key, title]));
    const { key: prefix = null, locale = null } = query;
    const { items, next_cursor } = await this.#ctx.page(
      { limit: DEFAULT_LIMIT, ...query },
      { list: `templates ${env} ${prefix ?? ''} ${locale ?? ''}`, order: { key: 'text', locale: 'text' }, ascending: true },
      ({ where, order, limit }) => sql<(Row & { origin: 'environment' | 'service' })[]>`
        select * from (
          select key, locale, subject, body, content_type, version, updated_at, 'environment' as origin from templates where env_id = ${env}
          union all
          select b.key, b.locale, b.subject, b.body, '' as content_type, 0 as version, null as updated_at, 'service' as origin
          from jsonb_to_recordset(${sql.json(brought)}::jsonb) as b(key text, locale text, subject text, body text)
          where not exists (select 1 from templates t where t.env_id = ${env} and t.key = b.key
            and lower(t.locale) = lower(b.locale))) listed
        where (${prefix}::text is null or starts_with(key, ${prefix})) and (${locale}::text is null or lower(locale) = lower(${locale}))
          and ${where} order by ${order} limit ${limit}`,
    );
    return { items: items.map(row => templateOf(row, row.origin, titles[row.key] ?? '')), next_cursor };
  }

  async put({
    params,
    body,
    env,
    caller,
    ifMatch,
  }: Pick<RequestOf<Contract, 'putTemplate'>, 'params' | 'body' | 'env' | 'caller' | 'ifMatch'>): Promise<Template> {
    const { locale, subject, body: text } = body;
    for (const each of [subject, text]) {
      const fault = templateFault(each);
      if (fault) throw this.#ctx.problem('template_invalid', { detail: fault });
    }
    const at = nowOf(this.#ctx);
    return this.#ctx.db.tx(async tx => {
      const [row] = await tx.sql<[Row]>`
        insert into templates (env_id, key, locale, subject, body, content_type, version, created_at, updated_at)
        values (${env}, ${params.key}, ${locale.replaceAll('_', '-')}, ${subject}, ${text}, ${contentTypeOf(text)}, 1, ${at}, ${at})
        on conflict (env_id, key, locale) do update set subject = excluded.subject, body = excluded.body,
          content_type = excluded.content_type, version = templates.version + 1, updated_at = excluded.updated_at
        returning key, locale, subject, body, content_type, version, updated_at`;
      // What stood there before this statement; words that a service brings have version 0. A refusal takes the statement back.
      this.#ctx.requireVersion(ifMatch, row.version - 1);
      await tx.audit({
        action: 'post.template.written',
        envId: env,
        caller,
        resource: { type: 'template', id: `${params.key}:${locale}` },
      });
      return templateOf(row, 'environment', this.#parts.brought.all().get(params.key)?.title ?? '');
    });
  }

  add({ body: { key, ...words }, env, caller, ifMatch }: RequestOf<Contract, 'addTemplate'>): Promise<Template> {
    return this.put({ params: { key }, body: words satisfies TemplateWords, env, caller, ifMatch });
  }

  async remove({
    params,
    query,
    env,
    caller,
    ifMatch,
  }: Pick<RequestOf<Contract, 'deleteTemplate'>, 'params' | 'query' | 'env' | 'caller' | 'ifMatch'>): Promise<void> {
    await this.#ctx.db.tx(async tx => {
      const gone = await tx.sql<{ version: number }[]>`delete from templates where env_id = ${env} and key = ${params.key}
        and (${query.locale ?? null}::text is null or lower(locale) = lower(${query.locale ?? null})) returning version`;
      if (gone.length === 0)
        throw this.#ctx.problem('template_not_found', { detail: 'The environment has no words of its own under this key and language.' });
      for (const { version } of gone) this.#ctx.requireVersion(ifMatch, version);
      await tx.audit({ action: 'post.template.removed', envId: env, caller, resource: { type: 'template', id: params.key } });
    });
  }

  async drop({ params, env, caller, ifMatch }: RequestOf<Contract, 'dropTemplate'>): Promise<{ ok: boolean }> {
    const { key, locale } = named(params.template_id);
    await this.remove({ params: { key }, query: { locale }, env, caller, ifMatch });
    return { ok: true };
  }

  async preview({ body, env }: RequestOf<Contract, 'previewTemplate'>): Promise<Preview> {
    const found = body.key === undefined ? undefined : await this.#parts.words.find(env, body.key, body.locale);
    if (!found && (body.subject === undefined || body.body === undefined))
      throw this.#ctx.problem('template_not_found', { detail: 'Name a key that there is, or give subject and body.' });
    const words = {
      locale: body.locale ?? 'en',
      ...found?.words,
      ...(body.subject === undefined ? {} : { subject: body.subject }),
      ...(body.body === undefined ? {} : { body: body.body }),
    };
    return this.#shown(
      env,
      { ...(words as FoundWords), content_type: contentTypeOf(words.body ?? '') },
      this.#varsFor(body.key, body.vars),
      found?.why ?? 'the words as given',
    );
  }

  async show({ params, env }: RequestOf<Contract, 'showTemplate'>): Promise<Preview> {
    const { key, locale } = named(params.template_id);
    const { words, why } = await this.#found(env, key, locale);
    return this.#shown(env, words, this.#varsFor(key, undefined), why);
  }

  /**
   * A real mail with sample values, by the gateway that messages of the environment use; into the mailbox where there is none, in
   * development.
   */
  async sendTest({ params, body, env, signal, correlationId }: RequestOf<Contract, 'sendTemplate'>): Promise<TestResult> {
    if (!isOneAddress(body.recipient))
      throw this.#ctx.problem('recipient_invalid', { detail: 'Write one e-mail address, without a name.' });
    const { key, locale } = named(params.template_id);
    const { words } = await this.#found(env, key, locale);
    const look = await this.#parts.tenants.look(env);
    const written = fill(words, varsOf({ env_id: env, user_id: 'test' }, this.#varsFor(key, body.vars), look));
    const gateway = await this.#parts.chosen.of(env, 'email');
    if (gateway) return this.#parts.tests.through(gateway, { recipient: body.recipient, env, written, signal, correlationId });
    if (!this.#parts.mailbox.open) return { ok: false, adapter: 'none', latency_ms: 0, error: 'no gateway for e-mail is enabled here' };
    const id = this.#ctx.platform.newId();
    await this.#ctx.db.tx(tx =>
      this.#parts.mailbox.keep(
        tx,
        mailOf({
          deliveryId: id,
          notificationId: id,
          envId: env,
          to: body.recipient,
          domain: this.#ctx.platform.domain,
          correlationId,
          tries: 0,
          written,
          look,
        }),
      ),
    );
    return { ok: true, adapter: 'mailbox', latency_ms: 0 };
  }

  async #found(env: string, key: string, locale: string) {
    const found = await this.#parts.words.find(env, key, locale);
    if (!found) throw this.#ctx.problem('template_not_found', { detail: `Nobody wrote or brought ${key}.` });
    return found;
  }

  #varsFor(key: string | undefined, given: Vars | undefined): Vars {
    return { ...(key === undefined ? {} : this.#parts.brought.all().get(key)?.sample), ...given };
  }

  async #shown(env: string, words: FoundWords, vars: Vars, why: string): Promise<Preview> {
    const fault = templateFault(words.subject) ?? templateFault(words.body);
    if (fault) throw this.#ctx.problem('template_invalid', { detail: fault });
    const look = await this.#parts.tenants.look(env);
    const { subject, body, content_type: type, locale } = this.#filled(words, varsOf({ env_id: env, user_id: 'somebody' }, vars, look));
    const html = (theme: 'light' | 'dark') => htmlMail({ subject, body, type, locale, look, theme });
    return {
      subject,
      locale,
      rendered_from: why,
      text: type === 'text/html' ? textOf(body) : body,
      html_light: html('light'),
      html_dark: html('dark'),
      vars,
    };
  }

  #filled(words: FoundWords, vars: Vars) {
    try {
      return fill(words, vars);
    } catch (error) {
      throw this.#ctx.problem('template_invalid', { detail: (error as Error).message.split('\n')[0] ?? 'It cannot be rendered.' });
    }
  }
}

function named(id: string): { key: string; locale: string } {
  const colon = id.lastIndexOf(':');
  return { key: id.slice(0, colon), locale: id.slice(colon + 1) };
}

function templateOf({ key, locale, subject, body, version, updated_at }: Row, origin: Template['origin'], title: string): Template {
  return {
    template_id: `${key}:${locale}`,
    key,
    locale,
    subject,
    body,
    content_type: contentTypeOf(body),
    origin,
    title,
    version,
    updated_at,
  };
}
