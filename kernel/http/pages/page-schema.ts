import { CHARTS, FIELD_TYPES, FORMATS, PAGE_SCOPES, type Static, TONES, type TSchema, Type } from '@platform/sdk';

/*
 * A page as the wire sends it (G-K-18), once: the kernel's answer is typed by it, `catalog/schema/page.schema.json` and the types of the
 * console are written from it. A schema with a `title` has that name in both.
 */

const literals = <const T extends readonly string[]>(values: T, title?: string) =>
  Type.Union(values.map(value => Type.Literal(value)) as never, title ? { title } : {}) as unknown as ReturnType<
    typeof Type.Unsafe<T[number]>
  >;
const closed = <P extends Record<string, TSchema>>(title: string, members: P, description?: string) =>
  Type.Object(members, { title, additionalProperties: false, ...(description ? { description } : {}) });
const maybe = Type.Optional;
const text = Type.String();
const texts = Type.Record(Type.String(), Type.String());

const Tone = literals(TONES, 'Tone');
/** `status` of an author is `badge` on the wire. */
const Format = literals(
  FORMATS.map(format => (format === 'status' ? 'badge' : format)) as readonly (Exclude<(typeof FORMATS)[number], 'status'> | 'badge')[],
  'Format',
);
const FieldType = literals(FIELD_TYPES, 'FieldType');
const Path = Type.String({ title: 'Path', description: 'Members from the outside in, with dots between' });
const Expr = closed('Expr', { path: Path, op: literals(['eq', 'ne', 'exists']), value: maybe(Type.Unknown()) });
const Link = closed('Link', {
  page: text,
  service: maybe(Type.String({ description: 'Extension: whose page it is; the same service without' })),
  params: maybe(texts),
});
const Source = closed('Source', {
  resource: Type.String({ description: 'Behind /v1/admin/; may hold {param}' }),
  query: maybe(texts),
  items: maybe(Path),
  paged: maybe(Type.Boolean()),
});
const Choice = Type.Object({ value: text, label: text }, { additionalProperties: false });
const Field = closed('Field', {
  name: text,
  label: text,
  type: FieldType,
  required: maybe(Type.Boolean()),
  default: maybe(Type.Unknown()),
  options: maybe(Type.Array(Choice)),
  options_source: maybe(Source),
  pattern: maybe(text),
  min: maybe(Type.Number()),
  max: maybe(Type.Number()),
  help: maybe(text),
  read_only: maybe(Type.Boolean()),
  when: maybe(Expr),
});
const Action = closed('Action', {
  id: text,
  label: text,
  resource: Type.String({ description: 'Behind /v1/admin/; may hold {row.member}' }),
  body: maybe(Type.Unknown({ description: 'Literals, {row.member} and {form.member}' })),
  confirm: maybe(text),
  tone: maybe(Tone),
  requires: maybe(Type.String({ description: 'An action name; hides the control from who may not' })),
  then: maybe(
    Type.Union([literals(['reload', 'toast', 'show']), Link], { description: '`show`, an extension, puts the answer before the reader' }),
  ),
  form: maybe(Type.Array(Field, { description: 'Extension: asked for in a dialog before the call' })),
  when: maybe(Expr),
});
const history = maybe(
  Type.Union([Type.Literal('value'), Type.Literal('change')], {
    description: 'Extension: draws what it was, or how it changed, with every reading of the page',
  }),
);
const Column = closed('Column', {
  label: text,
  value: Path,
  format: maybe(Format),
  tone_map: maybe(Type.Record(Type.String(), Tone)),
  link: maybe(Link),
  history,
  sort: maybe(Type.Literal(true, { description: 'Extension: its head sorts the table, by `sort` and `order` of the source' })),
});
const StatItem = closed('StatItem', {
  label: text,
  value: Path,
  format: maybe(Format),
  tone: maybe(Tone),
  tone_map: maybe(Type.Record(Type.String(), Tone)),
  trend: maybe(Path),
  history,
  link: maybe(Link),
});

const section = <K extends string, P extends Record<string, TSchema>>(title: string, kind: K, members: P) =>
  closed(title, { id: text, title: maybe(text), when: maybe(Expr), kind: Type.Literal(kind), ...members });
const StatsSection = section('StatsSection', 'stats', { source: Source, items: Type.Array(StatItem) });
const TableSection = section('TableSection', 'table', {
  source: Source,
  row_key: Path,
  columns: Type.Array(Column),
  filters: maybe(Type.Array(Field)),
  row_actions: maybe(Type.Array(Action)),
  bulk_actions: maybe(Type.Array(Action)),
  row_detail: maybe(Type.Array(Column, { description: 'Extension: what a row shows of itself when it is opened' })),
  empty: maybe(text),
});
const DetailSection = section('DetailSection', 'detail', {
  source: Source,
  fields: Type.Array(Column),
  actions: maybe(Type.Array(Action)),
});
const FormSection = section('FormSection', 'form', {
  source: maybe(Source),
  fields: Type.Array(Field),
  submit: Action,
  secondary: maybe(Type.Array(Action)),
});
const ChartSection = section('ChartSection', 'chart', {
  chart: literals(CHARTS),
  source: Source,
  x: Path,
  series: Type.Array(Type.Object({ label: text, value: Path }, { additionalProperties: false })),
  unit: maybe(text),
});
const ActionsSection = section('ActionsSection', 'actions', { actions: Type.Array(Action) });
const NoticeSection = section('NoticeSection', 'notice', { tone: Tone, text });
/** Sections inside of sections: the name is all that the type of a schema can say of itself. */
const Inner = Type.Unsafe<WireSection>(Type.Ref('Section'));
const TabsSection = section('TabsSection', 'tabs', {
  tabs: Type.Array(Type.Object({ label: text, sections: Type.Array(Inner) }, { additionalProperties: false })),
});
const flat = [StatsSection, TableSection, DetailSection, FormSection, ChartSection, ActionsSection, NoticeSection] as const;

/** The parts of a page that hold others of their kind, by the name they have in a reference. */
export const Section = Type.Union([...flat, TabsSection], { title: 'Section' });
export const PageSchema = closed('PageDef', {
  schema: Type.Literal('platform.admin-ui/1'),
  service: text,
  page: text,
  title: text,
  description: maybe(text),
  scope: literals(PAGE_SCOPES),
  params: maybe(Type.Array(Type.Object({ name: text, required: maybe(Type.Boolean()) }, { additionalProperties: false }))),
  refresh_s: maybe(Type.Number()),
  live_types: maybe(Type.Array(text)),
  sections: Type.Array(Inner),
});

type Head = { id: string; title?: string; when?: Static<typeof Expr> };
export type WireSection = Static<(typeof flat)[number]> | (Head & { kind: 'tabs'; tabs: { label: string; sections: WireSection[] }[] });
export type WireAction = Static<typeof Action>;
export type WireColumn = Static<typeof Column>;
export type WireField = Static<typeof Field>;
export type WireLink = Static<typeof Link>;
export type WireTable = Omit<Static<typeof TableSection>, 'id' | 'title' | 'when'>;
export type WireSource = Static<typeof Source>;
export type PageDefinition = Static<typeof PageSchema>;
