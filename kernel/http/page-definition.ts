import type { AnyRoute, ColumnDecl, PageDecl, RowAction, TSchema } from '@platform/sdk';
import type { Manifest } from '../base/manifest.ts';
import { policySections } from './policy-page.ts';
import { workSections } from './work-page.ts';

type Field = {
  name: string;
  label: string;
  type: string;
  required?: boolean;
  default?: unknown;
  options?: { value: string; label: string }[];
  pattern?: string;
  min?: number;
  max?: number;
  help?: string;
};
type Node = TSchema & {
  type?: string;
  properties?: Record<string, Node>;
  items?: Node;
  required?: string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Node[];
  title?: string;
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
  maxLength?: number;
};

/** Turns an author's page into the wire form the console draws (G-K-18): labels and schemas resolved, no code, no expression. */
export function pageDefinition(manifest: Manifest, name: string): object | undefined {
  const page = manifest.pages[name];
  if (!page) return undefined;
  return {
    schema: 'platform.admin-ui/1',
    service: manifest.id,
    page: name,
    title: page.title,
    ...(page.description ? { description: page.description } : {}),
    scope: page.scope ?? 'env',
    ...(page.live ? { live_types: page.live } : {}),
    ...(page.refresh ? { refresh_s: page.refresh } : {}),
    sections: sections(manifest, name, page),
  };
}

function sections(manifest: Manifest, name: string, page: PageDecl): object[] {
  switch (page.kind) {
    case 'table':
    case 'feed': {
      const source = manifest.routes[page.source] as AnyRoute;
      const key = page.key ?? rowKey(manifest, page.source) ?? 'id';
      const actions = (page.rowActions ?? []).map(action =>
        rowAction(manifest, name, key, typeof action === 'string' ? { route: action, label: manifest.routes[action]?.options.summary ?? action } : action),
      );
      if (page.update) actions.push(formAction(manifest, page.update, { id: 'update', label: 'Edit', resource: `${name}/{row.${key}}/update` }));
      if (page.remove) actions.push({ id: 'delete', label: 'Delete', resource: `${name}/{row.${key}}/delete`, confirm: 'Delete this for good?', tone: 'bad', then: 'reload' });
      const table = {
        id: name,
        kind: 'table',
        source: { resource: name, paged: 'cursor' in (source.options.query ?? {}) },
        row_key: key,
        columns: page.columns.map(column),
        filters: (page.filters ?? []).flatMap(filter => {
          const schema = source.options.query?.[filter];
          return schema ? [field(filter, schema as Node, false)] : [];
        }),
        row_actions: actions,
        ...(page.rowDetail ? { row_detail: page.rowDetail.map(column) } : {}),
        empty: page.empty ?? 'Nothing here yet.',
      };
      const above = [
        ...(page.create ? [formAction(manifest, page.create, { id: 'create', label: manifest.routes[page.create]?.options.summary ?? 'Create', resource: name })] : []),
        ...(page.actions ?? []).map(({ route, ...action }) => {
          const made = { then: 'reload', ...action, id: route, resource: `${name}/${route}` };
          return manifest.routes[route]?.options.body ? formAction(manifest, route, made) : made;
        }),
      ];
      return [...(above.length > 0 ? [{ id: `${name}-create`, kind: 'actions', actions: above }] : []), table];
    }
    case 'detail':
      return [{ id: name, kind: 'detail', source: { resource: name }, fields: page.fields.map(column) }];
    case 'form':
      return [
        {
          id: name,
          kind: 'form',
          ...(page.source ? { source: { resource: `${name}/initial` } } : {}),
          fields: bodyFields(manifest.routes[page.submit]),
          submit: { id: 'submit', label: manifest.routes[page.submit]?.options.summary ?? 'Save', resource: name, then: 'toast' },
        },
      ];
    case 'stats':
      return [{ id: name, kind: 'stats', source: { resource: name }, items: page.items.map(item => ({ ...column(item), ...(item.history ? { history: item.history } : {}) })) }];
    case 'chart':
      return [
        {
          id: name,
          kind: 'chart',
          chart: page.chart,
          source: { resource: name },
          x: page.x,
          series: page.series.map(({ field: value, label }) => ({ label, value })),
          ...(page.unit ? { unit: page.unit } : {}),
        },
      ];
    case 'text':
      return [{ id: name, kind: 'notice', tone: 'info', text: page.text }];
    case 'policy':
      return [policySections(manifest.id)];
    case 'work':
      return workSections(manifest);
    case 'tabs':
      return [{ id: name, kind: 'tabs', tabs: page.tabs.map(({ label, page: inner }) => ({ label, sections: manifest.pages[inner] ? sections(manifest, inner, manifest.pages[inner]) : [] })) }];
  }
}

function column({ field: value, label, as, tones }: ColumnDecl): object {
  return { label, value, ...(as ? { format: as === 'status' ? 'badge' : as } : {}), ...(tones ? { tone_map: tones } : {}) };
}

function rowAction(manifest: Manifest, page: string, key: string, action: RowAction): Record<string, unknown> {
  const made: Record<string, unknown> = {
    id: action.route,
    label: action.label,
    resource: `${page}/{row.${key}}/${action.route}`,
    ...(action.confirm ? { confirm: action.confirm } : {}),
    ...(action.tone ? { tone: action.tone } : {}),
    ...(action.when ? { when: { path: action.when.field, op: 'eq', value: action.when.is } } : {}),
    then: action.then ?? 'reload',
  };
  if (action.body) return { ...made, body: action.body };
  return manifest.routes[action.route]?.options.body ? formAction(manifest, action.route, made) : made;
}

/** An action whose route has a body opens a form made from its schema (day-one, Plugins). */
function formAction(manifest: Manifest, route: string, action: Record<string, unknown>): Record<string, unknown> {
  return { then: 'reload', ...action, form: bodyFields(manifest.routes[route]) };
}

function bodyFields(route: AnyRoute | undefined): Field[] {
  const body = route?.options.body as Node | undefined;
  return Object.entries(body?.properties ?? {}).map(([name, schema]) => field(name, schema, body?.required?.includes(name) ?? false));
}

/** A widget follows from its schema (house 16). */
function field(name: string, schema: Node, required: boolean): Field {
  const choices = choicesOf(schema);
  const several = schema.type === 'array' && schema.items ? choicesOf(schema.items) : undefined;
  const inner = !choices && schema.anyOf ? (schema.anyOf.find(option => option.type !== 'null') ?? schema) : schema;
  const options = choices ?? several;
  const type = choices ? 'select' : several ? 'multiselect' : widget(inner);
  return {
    name,
    label: schema.title ?? sentence(name),
    type,
    // A switch always has a value; `required` would ask for yes.
    ...(required && type !== 'bool' ? { required } : {}),
    ...(schema.default === undefined ? {} : { default: schema.default }),
    ...(options ? { options } : {}),
    ...(inner.pattern ? { pattern: inner.pattern } : {}),
    ...(inner.minimum === undefined ? {} : { min: inner.minimum }),
    ...(inner.maximum === undefined ? {} : { max: inner.maximum }),
    ...(schema.description ? { help: schema.description } : {}),
  };
}

/** The values a schema names one by one, as options. */
function choicesOf(schema: Node): { value: string; label: string }[] | undefined {
  const named = (value: unknown, title?: string) => ({ value: String(value), label: title ?? sentence(String(value)) });
  if (schema.enum) return schema.enum.map(value => named(value));
  return schema.anyOf?.every(option => option.const !== undefined) ? schema.anyOf.map(option => named(option.const, option.title)) : undefined;
}

function widget(schema: Node): string {
  if (schema.type === 'integer' || schema.type === 'number') return 'number';
  if (schema.type === 'boolean') return 'bool';
  if (schema.type === 'object' || schema.type === 'array') return 'json';
  if (schema.format === 'date-time') return 'datetime';
  return (schema.maxLength ?? 0) > 200 ? 'textarea' : 'text';
}

/** The member of a row that fills the path parameter of its actions: the first required member ending in `_id`. */
function rowKey(manifest: Manifest, route: string): string | undefined {
  const items = (manifest.routes[route]?.options.returns as Node | undefined)?.properties?.['items'] as (Node & { items?: Node }) | undefined;
  return items?.items?.required?.find(name => name.endsWith('_id'));
}

const sentence = (name: string) => {
  const words = name.replaceAll(/[_-]+/g, ' ').trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
};
