import { type Manifest, type RowAction, TONES } from '@platform/sdk';
import { type AnswerSchema, memberAt, membersOf } from './answer-members.ts';
import type { AddFinding } from '../finding.ts';
import { namedIn, type PagePart, parametersOf, requireMember, requireNamed, requireOneOf, type Shown } from './page-part.ts';

/** Every action of a part with the member that holds it, written out where the author gave only the route. */
export function actionsOf(manifest: Manifest, part: PagePart['part']): [member: string, action: RowAction][] {
  return ['actions', 'rowActions', 'bulkActions'].flatMap((member): [string, RowAction][] => {
    const declared = (part as unknown as Record<string, readonly (string | RowAction)[] | undefined>)[member] ?? [];
    return declared.map(action => [member, typeof action === 'string' ? { route: action, label: labelOf(manifest, action) } : action]);
  });
}

const labelOf = (manifest: Manifest, route: string): string => manifest.routes[route]?.options.summary ?? route;

/** What actions say of rows (E051), whose id they take (E054), what they send (E057), and who sees them (E031). */
export function checkActions(manifest: Manifest, part: PagePart['part'], shown: Shown | undefined, where: string, add: AddFinding): void {
  const params = parametersOf(part);
  for (const [member, action] of actionsOf(manifest, part)) {
    const at = `${where}.${member}.${action.route}`;
    const ofPage = member === 'actions' && part.kind !== 'record';
    requireOneOf(TONES, action.tone, `${at}.tone`, add);
    if (typeof action.then === 'string') requireOneOf(['reload', 'show', 'toast'], action.then, `${at}.then`, add);
    checkRequired(manifest, action, `${at}.requires`, add);
    checkBody(manifest, action, `${at}.body`, add);
    if (ofPage) {
      for (const name of namedIn(action.confirm ?? ''))
        add('E051', `${at}.confirm`, `An action of the page has no row, and so no '${name}'.`, 'Name it without braces.');
      if (action.when && !params.includes(action.when.field))
        add('E051', `${at}.when`, `The page has no parameter '${action.when.field}'.`, `Use one of: ${params.join(', ') || '(none)'}.`);
      continue;
    }
    requireId(manifest, action.route, `${where}.${member}`, add);
    if (!shown) continue;
    requireNamed(shown, action.confirm, `${at}.confirm`, add);
    if (action.when) requireMember(shown, action.when.field, `${at}.when`, add);
  }
  for (const member of ['update', 'remove'] as const) {
    const route = (part as unknown as Record<string, string | undefined>)[member];
    if (route !== undefined) requireId(manifest, route, `${where}.${member}`, add);
  }
}

/** What is done to a row names it in the path of its route. */
function requireId(manifest: Manifest, route: string, where: string, add: AddFinding): void {
  const path = manifest.routes[route]?.path;
  if (path !== undefined && !/\{[A-Za-z_]+\}/.test(path))
    add('E054', where, `${route} takes no id in its path.`, "Give the route a path such as '/v1/loans/{loan_id}'.");
}

/** Who is shown the control is asked by an action of the contract (E031, as of a gate). */
function checkRequired(manifest: Manifest, { requires }: RowAction, where: string, add: AddFinding): void {
  if (requires === undefined || requires in manifest.actions) return;
  add('E031', where, `No action '${requires}'.`, `Use one of: ${Object.keys(manifest.actions).join(', ')}.`);
}

/** Values sent without asking are members of the route's body. */
function checkBody(manifest: Manifest, { route, body }: RowAction, where: string, add: AddFinding): void {
  const declared = manifest.routes[route];
  if (!declared || body === undefined) return;
  const schema = (declared.options.body ?? { type: 'object' }) as AnswerSchema;
  for (const name of Object.keys(body))
    if (!memberAt(schema, name))
      add('E057', where, `${route} takes no '${name}'.`, `Use one of: ${membersOf(schema).join(', ') || '(none)'}.`);
}
