/** JSON schema as a manifest carries it, as far as members are looked up in it. */
export interface AnswerSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, AnswerSchema>>;
  readonly patternProperties?: Readonly<Record<string, AnswerSchema>>;
  readonly additionalProperties?: boolean | AnswerSchema;
  readonly items?: AnswerSchema;
  readonly anyOf?: readonly AnswerSchema[];
  readonly oneOf?: readonly AnswerSchema[];
  readonly allOf?: readonly AnswerSchema[];
  readonly required?: readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
}

/** A schema that says nothing: whatever is looked up in it may be there. */
const ANYTHING: AnswerSchema = {};
const alternatives = ({ anyOf = [], oneOf = [], allOf = [] }: AnswerSchema) => [...anyOf, ...oneOf, ...allOf];
const saysNothing = (schema: AnswerSchema) =>
  schema.type === undefined &&
  schema.properties === undefined &&
  schema.const === undefined &&
  schema.enum === undefined &&
  alternatives(schema).length === 0;

/** What stands at a dotted path of an answer; nothing where its schema has no such member. */
export function memberAt(schema: AnswerSchema, path: string): AnswerSchema | undefined {
  if (path === '' || path === '.') return schema;
  let found: AnswerSchema | undefined = schema;
  for (const step of path.split('.')) found = found && child(found, step);
  return found;
}

function child(schema: AnswerSchema, name: string): AnswerSchema | undefined {
  if (saysNothing(schema)) return ANYTHING;
  const own = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties?.[name] : undefined;
  if (own) return own;
  const patterned = Object.entries(schema.patternProperties ?? {}).find(([pattern]) => new RegExp(pattern).test(name))?.[1];
  if (patterned) return patterned;
  if (schema.additionalProperties === true) return ANYTHING;
  if (typeof schema.additionalProperties === 'object') return schema.additionalProperties;
  if (schema.type === 'array' && /^\d+$/.test(name)) return schema.items ?? ANYTHING;
  for (const alternative of alternatives(schema)) {
    const found = child(alternative, name);
    if (found) return found;
  }
  return undefined;
}

/** What one item of a list is: the list stands under `items`, or is the answer itself. Nothing where the answer is no list. */
export function itemOf(answer: AnswerSchema): AnswerSchema | undefined {
  if (answer.type === 'array') return answer.items ?? ANYTHING;
  const items = child(answer, 'items');
  if (items && saysNothing(items)) return ANYTHING;
  return items?.type === 'array' ? (items.items ?? ANYTHING) : undefined;
}

/** The members that somebody may have meant. */
export const membersOf = (schema: AnswerSchema): string[] => [
  ...new Set([...Object.keys(schema.properties ?? {}), ...alternatives(schema).flatMap(membersOf)]),
];
