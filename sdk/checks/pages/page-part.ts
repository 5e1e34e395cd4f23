import type { BoardSection, PageDecl, RecordTab } from '@platform/sdk';
import { type AnswerSchema, memberAt, membersOf } from './answer-members.ts';
import type { AddFinding } from '../finding.ts';

/** A page, or a part of one. */
export interface PagePart {
  readonly where: string;
  readonly part: BoardSection | RecordTab | PageDecl;
  /** Whether it stands for itself; the parts of a record are asked with its id. */
  readonly alone: boolean;
  /** What the record around it answers. */
  readonly record?: AnswerSchema;
}
/** What a source answers, as far as a part shows it. */
export interface Shown {
  readonly schema: AnswerSchema;
  readonly whose: string;
}

/** A value of a closed set (E056). */
export function requireOneOf(set: readonly string[], value: string | undefined, where: string, add: AddFinding): void {
  if (value !== undefined && !set.includes(value)) add('E056', where, `'${value}' is not known here.`, `Use one of: ${set.join(', ')}.`);
}

/** A member of an answer (E051). */
export function requireMember({ schema, whose }: Shown, member: string, where: string, add: AddFinding): void {
  if (memberAt(schema, member)) return;
  add('E051', where, `${whose} have no member '${member}'.`, `Use one of: ${membersOf(schema).join(', ') || '(none declared)'}.`);
}

/** What a text names in braces. */
export const namedIn = (text: string): string[] =>
  [...text.matchAll(/\{(?:row\.)?([a-z_][\w.]*)\}/gi)].map(([, member]) => member as string);

export function requireNamed(shown: Shown, text: string | undefined, where: string, add: AddFinding): void {
  for (const member of namedIn(text ?? '')) requireMember(shown, member, where, add);
}

/** The parameters that the author of a page gave it. */
export const parametersOf = (part: PagePart['part']): string[] => ('params' in part ? (part.params ?? []) : []).map(({ name }) => name);
