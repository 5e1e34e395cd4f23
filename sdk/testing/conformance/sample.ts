/** What a test may write for a text, by its format. */
const FORMATS: Readonly<Record<string, string>> = {
  uuid: '01900000-0000-7000-8000-00000000abcd',
  'date-time': '2026-01-31T10:20:30.000Z',
  date: '2026-01-31',
  time: '10:20:30Z',
  email: 'ada@example.org',
  uri: 'https://example.org/',
  url: 'https://example.org/',
  hostname: 'example.org',
  ipv4: '203.0.113.7',
};
/** Texts of the shapes that contracts ask for by a pattern; the first that fits is taken. */
const TEXTS = [
  'sample',
  'a',
  'sample-one',
  'sample_one',
  'sample:read',
  'sample:en',
  'probe:thing:created',
  'platform:probe:thing:created',
  'platform:sys:env:created',
  '1.0.0',
  'v1',
  '1',
  '#0a7f3f',
  'en',
  'en-GB',
  '+441632960000',
  '* * * * *',
  '/v1/sample',
  'https://example.org',
  'https://example.org/',
  'example.org',
  'platform.example.org',
  'ada@example.org',
  '203.0.113.7',
  '203.0.113.0/24',
  '127.0.0.1:8443',
  'SAMPLE_ONE',
  '2026-01-31',
  ...Object.values(FORMATS),
  'a'.repeat(32),
  'a'.repeat(40),
  'a'.repeat(43),
  'a'.repeat(64),
  'A'.repeat(43),
];

interface JsonSchema {
  readonly [member: string]: unknown;
  readonly type?: string;
  readonly const?: unknown;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minProperties?: number;
}

/** No value of a schema is known. */
export class NoSample extends Error {}

/**
 * A value that fits a schema, with as little in it as the schema lets it have. The same each time. Throws {@link NoSample} for a pattern
 * that none of the texts here fits.
 */
export function sampleOf(schema: unknown): unknown {
  const given = schema as JsonSchema;
  if ('const' in given) return given.const;
  if (given.default !== undefined) return given.default;
  if (given.enum) return given.enum[0];
  const [choice] = given.anyOf ?? given.oneOf ?? [];
  if (choice) return given.properties ? { ...ofProperties(given), ...(sampleOf(choice) as object) } : sampleOf(choice);
  if (given.allOf) return Object.assign({}, ...given.allOf.map(part => sampleOf(part) as object), ofProperties(given));
  switch (given.type) {
    case 'object':
      return ofProperties(given);
    case 'array':
      return Array.from({ length: given.minItems ?? 0 }, () => sampleOf(given.items ?? {}));
    case 'integer':
    case 'number':
      return Math.max(given.minimum ?? 1, Math.min(1, (given['maximum'] as number | undefined) ?? 1));
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'string':
      return textOf(given);
    default:
      return {};
  }
}

function ofProperties({ properties = {}, required = [] }: JsonSchema): Record<string, unknown> {
  return Object.fromEntries(required.map(name => [name, sampleOf(properties[name] ?? {})]));
}

function textOf({ format, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema): string {
  if (format && FORMATS[format] !== undefined && pattern === undefined) return FORMATS[format];
  const fits = (text: string) =>
    text.length >= minLength && text.length <= maxLength && (pattern === undefined || new RegExp(pattern, 'u').test(text));
  const found = [...TEXTS, 'a'.repeat(Math.min(minLength, 10_000))].find(fits);
  if (found === undefined) throw new NoSample(`no text of the kit fits ${pattern}`);
  return found;
}
