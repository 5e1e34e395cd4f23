/** An attribute of a schema (RFC 7643, 7). */
export interface ScimAttribute {
  readonly name: string;
  readonly type: 'string' | 'boolean' | 'dateTime' | 'reference' | 'binary' | 'complex';
  readonly multiValued: boolean;
  readonly description: string;
  readonly required: boolean;
  readonly caseExact: boolean;
  readonly mutability: 'readWrite' | 'readOnly' | 'writeOnly';
  readonly returned: 'always' | 'default' | 'never';
  readonly uniqueness: 'none' | 'server';
  readonly canonicalValues?: readonly string[];
  readonly referenceTypes?: readonly string[];
  readonly subAttributes?: readonly ScimAttribute[];
}
type Traits = Partial<Omit<ScimAttribute, 'name' | 'type' | 'description'>>;

const plain = {
  multiValued: false,
  required: false,
  caseExact: false,
  mutability: 'readWrite',
  returned: 'default',
  uniqueness: 'none',
} as const;

export const text = (name: string, description: string, traits: Traits = {}): ScimAttribute => ({
  name,
  type: 'string',
  description,
  ...plain,
  ...traits,
});
export const flag = (name: string, description: string, traits: Traits = {}): ScimAttribute => ({
  name,
  type: 'boolean',
  description,
  ...plain,
  ...traits,
});
export const moment = (name: string, description: string, traits: Traits = {}): ScimAttribute => ({
  name,
  type: 'dateTime',
  description,
  ...plain,
  ...traits,
});
export const binary = (name: string, description: string): ScimAttribute => ({
  name,
  type: 'binary',
  description,
  ...plain,
  caseExact: true,
});
export const link = (name: string, description: string, referenceTypes: readonly string[], traits: Traits = {}): ScimAttribute => ({
  name,
  type: 'reference',
  description,
  ...plain,
  caseExact: true,
  referenceTypes,
  ...traits,
});
export const complex = (
  name: string,
  description: string,
  subAttributes: readonly ScimAttribute[],
  traits: Traits = {},
): ScimAttribute => ({
  name,
  type: 'complex',
  description,
  ...plain,
  subAttributes,
  ...traits,
});

/** Names are compared without regard to case (RFC 7643, 2.1). */
export const named = (attributes: readonly ScimAttribute[] | undefined, name: string): ScimAttribute | undefined =>
  attributes?.find(each => each.name.toLowerCase() === name.toLowerCase());
