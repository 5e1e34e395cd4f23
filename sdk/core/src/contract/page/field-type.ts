/** Controls that ask for a value (G-K-18). Most follow from the schema; `secret_ref`, `file` and `color` are said by `widget`. */
export const FIELD_TYPES = [
  'text',
  'textarea',
  'number',
  'bool',
  'select',
  'multiselect',
  'datetime',
  'json',
  'color',
  'secret_ref',
  'file',
] as const;

export type FieldType = (typeof FIELD_TYPES)[number];

declare module 'typebox' {
  interface TSchemaOptions {
    /** Which control asks for it, where the type does not tell. */
    widget?: FieldType;
    /** The route of this contract whose items are the choices. */
    optionsFrom?: string;
  }
}
