import { valueAt } from './path.ts';

export interface TemplateScope {
  readonly row?: unknown;
  readonly form?: unknown;
  readonly params?: Readonly<Record<string, string>>;
}

const HOLE = /\{([a-z_][\w.]*)\}/gi;

function lookUp(path: string, { row, form, params }: TemplateScope): unknown {
  if (path.startsWith('row.')) return valueAt(row, path.slice(4));
  if (path.startsWith('form.')) return valueAt(form, path.slice(5));
  if (path === 'row') return row;
  if (path === 'form') return form;
  return params?.[path];
}

const asText = (value: unknown): string =>
  value === undefined || value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);

/** Fills a URL path; every value is one encoded segment, so data can never change which resource is called. */
export function fillPath(template: string, scope: TemplateScope): string {
  return template.replace(HOLE, (_, path: string) => encodeURIComponent(asText(lookUp(path, scope))));
}

export function fillText(template: string, scope: TemplateScope): string {
  return template.replace(HOLE, (_, path: string) => asText(lookUp(path, scope)));
}

/** Fills a body. A string that is one hole takes the value with its type; members without a value are left out. */
export function fillBody(template: unknown, scope: TemplateScope): unknown {
  if (typeof template === 'string') {
    const whole = /^\{([a-z_][\w.]*)\}$/i.exec(template);
    return whole ? lookUp(whole[1] as string, scope) : fillText(template, scope);
  }
  if (Array.isArray(template)) return template.map(item => fillBody(item, scope));
  if (template !== null && typeof template === 'object') {
    const filled = Object.entries(template).map(([name, value]) => [name, fillBody(value, scope)] as const);
    return Object.fromEntries(filled.filter(([, value]) => value !== undefined));
  }
  return template;
}

/** What an action sends: its own body when that names the form, else the form's values under its literals. */
export function actionBody(body: unknown, scope: TemplateScope): unknown {
  const filled = fillBody(body ?? {}, scope);
  if (scope.form === undefined || JSON.stringify(body ?? null).includes('{form')) return filled;
  return { ...(scope.form as object), ...(filled as object) };
}
