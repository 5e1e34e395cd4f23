/** What a service says about a page (`platform.admin-ui/1`). Written by scripts/golden.ts from kernel/http/pages/page-schema.ts. */

export type Section = StatsSection | TableSection | DetailSection | FormSection | ChartSection | ActionsSection | NoticeSection | TabsSection;
export interface StatsSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'stats';
  source: Source;
  items: StatItem[];
}
export interface Expr {
  path: Path;
  op: 'eq' | 'ne' | 'exists';
  value?: unknown;
}
/** Members from the outside in, with dots between. */
export type Path = string;
export interface Source {
  /** Behind /v1/admin/; may hold {param}. */
  resource: string;
  query?: Record<string, string>;
  items?: Path;
  paged?: boolean;
}
export interface StatItem {
  label: string;
  value: Path;
  format?: Format;
  tone?: Tone;
  tone_map?: Record<string, Tone>;
  trend?: Path;
  /** Extension: draws what it was, or how it changed, with every reading of the page. */
  history?: 'value' | 'change';
  link?: Link;
}
export type Format = 'text' | 'number' | 'bytes' | 'percent' | 'duration_s' | 'datetime' | 'ago' | 'bool' | 'json' | 'badge' | 'code' | 'html';
export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'muted';
export interface Link {
  page: string;
  /** Extension: whose page it is; the same service without. */
  service?: string;
  params?: Record<string, string>;
}
export interface TableSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'table';
  source: Source;
  row_key: Path;
  columns: Column[];
  filters?: Field[];
  row_actions?: Action[];
  bulk_actions?: Action[];
  /** Extension: what a row shows of itself when it is opened. */
  row_detail?: Column[];
  empty?: string;
}
export interface Column {
  label: string;
  value: Path;
  format?: Format;
  tone_map?: Record<string, Tone>;
  link?: Link;
  /** Extension: draws what it was, or how it changed, with every reading of the page. */
  history?: 'value' | 'change';
  /** Extension: its head sorts the table, by `sort` and `order` of the source. */
  sort?: true;
}
export interface Field {
  name: string;
  label: string;
  type: FieldType;
  required?: boolean;
  default?: unknown;
  options?: { value: string; label: string }[];
  options_source?: Source;
  pattern?: string;
  min?: number;
  max?: number;
  help?: string;
  read_only?: boolean;
  when?: Expr;
}
export type FieldType = 'text' | 'textarea' | 'number' | 'bool' | 'select' | 'multiselect' | 'datetime' | 'json' | 'color' | 'secret_ref' | 'file';
export interface Action {
  id: string;
  label: string;
  /** Behind /v1/admin/; may hold {row.member}. */
  resource: string;
  /** Literals, {row.member} and {form.member}. */
  body?: unknown;
  confirm?: string;
  tone?: Tone;
  /** An action name; hides the control from who may not. */
  requires?: string;
  /** `show`, an extension, puts the answer before the reader. */
  then?: 'reload' | 'toast' | 'show' | Link;
  /** Extension: asked for in a dialog before the call. */
  form?: Field[];
  when?: Expr;
}
export interface DetailSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'detail';
  source: Source;
  fields: Column[];
  actions?: Action[];
}
export interface FormSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'form';
  source?: Source;
  fields: Field[];
  submit: Action;
  secondary?: Action[];
}
export interface ChartSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'chart';
  chart: 'line' | 'area' | 'bar' | 'pie';
  source: Source;
  x: Path;
  series: { label: string; value: Path }[];
  unit?: string;
}
export interface ActionsSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'actions';
  actions: Action[];
}
export interface NoticeSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'notice';
  tone: Tone;
  text: string;
}
export interface TabsSection {
  id: string;
  title?: string;
  when?: Expr;
  kind: 'tabs';
  tabs: { label: string; sections: Section[] }[];
}
export interface PageDef {
  schema: 'platform.admin-ui/1';
  service: string;
  page: string;
  title: string;
  description?: string;
  scope: 'platform' | 'org' | 'env';
  params?: { name: string; required?: boolean }[];
  refresh_s?: number;
  live_types?: string[];
  sections: Section[];
}
