/** JSON schema, as far as the schemas of the wire use it. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly title?: string;
  readonly description?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
}
type Definitions = Record<string, JsonSchema>;

/** A schema as a file of its own: what has a title is said once, under `$defs`. */
export function schemaFile(root: JsonSchema, parts: readonly JsonSchema[]): JsonSchema & { $defs: Definitions } {
  const defs: Definitions = {};
  for (const part of parts) plain(part, defs);
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...body(root, defs), $defs: defs } as never;
}

function plain(node: JsonSchema, defs: Definitions): JsonSchema {
  if (node.$ref) return { $ref: `#/$defs/${node.$ref}` };
  if (!node.title) return body(node, defs);
  if (!(node.title in defs)) {
    defs[node.title] = {};
    defs[node.title] = body(node, defs);
  }
  return { $ref: `#/$defs/${node.title}` };
}

function body({ title, ...node }: JsonSchema, defs: Definitions): JsonSchema {
  const each = (members: Readonly<Record<string, JsonSchema>>) =>
    Object.fromEntries(Object.entries(members).map(([name, inner]) => [name, plain(inner, defs)]));
  const named = { ...(title ? { title } : {}), ...node };
  if (node.anyOf?.every(option => option.const !== undefined)) {
    const { anyOf, ...rest } = named;
    return { ...rest, enum: anyOf?.map(option => option.const) ?? [] };
  }
  return {
    ...named,
    ...(node.properties ? { properties: each(node.properties) } : {}),
    ...(node.patternProperties ? { patternProperties: each(node.patternProperties) } : {}),
    ...(node.items ? { items: plain(node.items, defs) } : {}),
    ...(node.anyOf ? { anyOf: node.anyOf.map(option => plain(option, defs)) } : {}),
  };
}

/** The same as TypeScript, for those who know the wire and not the code behind it. */
export function typesOf({ $defs, ...root }: JsonSchema & { $defs: Definitions }): string {
  return [...Object.entries($defs), [root.title ?? 'Root', root] as const].map(([name, node]) => declaration(name, node)).join('\n');
}

function declaration(name: string, node: JsonSchema): string {
  const said = node.description ? `/** ${node.description}. */\n` : '';
  return node.properties
    ? `${said}export interface ${name} {\n${members(node, '  ', '\n')}\n}`
    : `${said}export type ${name} = ${typeOf(node)};`;
}

function members({ properties = {}, required = [] }: JsonSchema, indent: string, between: string): string {
  return Object.entries(properties)
    .map(([name, node]) => {
      const said = node.description && indent ? `${indent}/** ${node.description}. */\n` : '';
      return `${said}${indent}${name}${required.includes(name) ? '' : '?'}: ${typeOf(node)};`;
    })
    .join(between);
}

function typeOf(node: JsonSchema): string {
  if (node.$ref) return node.$ref.replace('#/$defs/', '');
  if (node.const !== undefined) return literal(node.const);
  if (node.enum) return node.enum.map(literal).join(' | ');
  if (node.anyOf) return node.anyOf.map(typeOf).join(' | ');
  if (node.type === 'array') return inBrackets(typeOf(node.items ?? {}));
  if (node.properties) return `{ ${members(node, '', ' ').replace(/;$/, '')} }`;
  if (node.patternProperties) return `Record<string, ${typeOf(Object.values(node.patternProperties)[0] ?? {})}>`;
  return node.type === undefined ? 'unknown' : node.type === 'integer' ? 'number' : node.type;
}

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value));
const inBrackets = (type: string): string => (type.includes(' | ') ? `(${type})[]` : `${type}[]`);
