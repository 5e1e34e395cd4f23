import { FIELD_TYPES, type Manifest } from '@platform/sdk';
import { type AnswerSchema, itemOf } from './answer-members.ts';
import type { AddFinding } from '../finding.ts';

/** The controls of forms and filters: their kind (E058), and where their choices come from (E059). */
export function checkFields(manifest: Manifest, add: AddFinding): void {
  for (const [name, { options }] of Object.entries(manifest.routes))
    for (const part of ['body', 'query'] as const) look(manifest, options[part], `routes.${name}.${part}`, add);
}

function look(manifest: Manifest, node: unknown, where: string, add: AddFinding): void {
  if (typeof node !== 'object' || node === null) return;
  const { widget, optionsFrom } = node as { widget?: unknown; optionsFrom?: unknown };
  if (typeof widget === 'string' && !(FIELD_TYPES as readonly string[]).includes(widget))
    add('E058', where, `'${widget}' is no control.`, `Use one of: ${FIELD_TYPES.join(', ')}.`);
  if (typeof optionsFrom === 'string') checkChoices(manifest, optionsFrom, where, add);
  for (const [member, inner] of Object.entries(node)) look(manifest, inner, member === 'properties' ? where : `${where}.${member}`, add);
}

function checkChoices(manifest: Manifest, name: string, where: string, add: AddFinding): void {
  const route = manifest.routes[name];
  const lists = Object.keys(manifest.routes).filter(each => manifest.routes[each] && offers(manifest.routes[each]));
  if (!route) add('E059', where, `No route '${name}'.`, `Use one of: ${lists.join(', ')}.`);
  else if (!offers(route)) add('E059', where, `${name} is no list that is read without an id.`, `Use one of: ${lists.join(', ')}.`);
}

const offers = ({ method, path, options }: Manifest['routes'][string]): boolean =>
  method === 'GET' && !path.includes('{') && itemOf((options.returns ?? {}) as AnswerSchema) !== undefined;
