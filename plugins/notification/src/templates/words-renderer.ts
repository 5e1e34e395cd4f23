import { Liquid } from 'liquidjs';

const LIMITS = { parseLimit: 200_000, renderLimit: 200, memoryLimit: 5_000_000 };
export type ContentType = 'text/plain' | 'text/html';
export type Vars = Readonly<Record<string, string | number | boolean>>;

/** An engine without files: nothing is included from anywhere, and a value is only what was given. */
function engine(escaped: boolean): Liquid {
  const made = new Liquid({
    ...LIMITS,
    templates: {},
    ownPropertyOnly: true,
    strictVariables: false,
    strictFilters: true,
    ...(escaped ? { outputEscape: 'escape' as const } : {}),
  });
  // A value never speaks HTML, whatever a template asks for (G-POST-06).
  made.registerFilter('raw', (value: unknown) => value);
  return made;
}
const plain = engine(false);
const html = engine(true);

/** What is wrong with a template, in words for its author; `undefined` when it can be rendered. */
export function templateFault(text: string): string | undefined {
  if (text.includes('{{{')) return '{{{ is not supported: a value is always escaped. Write {{name}}.';
  try {
    plain.parse(text);
    return undefined;
  } catch (error) {
    return (error as Error).message.split('\n')[0] ?? 'It cannot be read.';
  }
}

/** Fills in the values; a missing one is empty. Throws when the template takes too long or too much. */
export function renderWords(text: string, vars: Vars, type: ContentType): string {
  return String((type === 'text/html' ? html : plain).parseAndRenderSync(text, vars));
}

/** A subject is one line, whatever stands in its values. */
export const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim();

/** Text with tags in it is HTML. */
export const contentTypeOf = (body: string): ContentType =>
  /<(?:!doctype|\/?[a-z][a-z0-9]*)(?:\s[^<>]*)?\/?>/i.test(body) ? 'text/html' : 'text/plain';
