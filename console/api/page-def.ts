/** What a service says about a page (`platform.admin-ui/1`); the console knows these kinds and nothing else. */
export type Path = string;
export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'muted';
export type Format = 'text' | 'number' | 'bytes' | 'percent' | 'duration_s' | 'datetime' | 'ago' | 'bool' | 'json' | 'badge' | 'code' | 'html';
export interface Expr {
  path: Path;
  op: 'eq' | 'ne' | 'exists';
  value?: unknown;
}
export interface Link {
  page: string;
  params?: Record<string, string>;
}
export interface Source {
  resource: string;
  query?: Record<string, string>;
  items?: Path;
  paged?: boolean;
}
export type FieldType =
  | 'text' | 'textarea' | 'number' | 'bool' | 'select' | 'multiselect'
  | 'datetime' | 'json' | 'color' | 'secret_ref' | 'file';
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
  /** Extension: shown only while the form's values satisfy it. */
  when?: Expr;
}
export interface Action {
  id: string;
  label: string;
  resource: string;
  body?: unknown;
  confirm?: string;
  tone?: Tone;
  requires?: string;
  /** `show`, an extension: the answer is put before the reader. */
  then?: 'reload' | 'toast' | 'show' | Link;
  /** Extension: asked for in a dialog before the call. */
  form?: Field[];
  /** Extension: offered only while the row satisfies it. */
  when?: Expr;
}
export interface Column {
  label: string;
  value: Path;
  format?: Format;
  tone_map?: Record<string, Tone>;
  link?: Link;
  /** Extension: draws what the row said, or how it changed, with every reading of the page. */
  history?: 'value' | 'change';
}
export interface StatItem {
  label: string;
  value: Path;
  format?: Format;
  tone?: Tone;
  trend?: Path;
  /** Draws what the figure was, or how it changed, with every reading of the page. */
  history?: 'value' | 'change';
}
export type StatsSection = { kind: 'stats'; source: Source; items: StatItem[] };
export type TableSection = {
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
};
export type DetailSection = { kind: 'detail'; source: Source; fields: { label: string; value: Path; format?: Format }[]; actions?: Action[] };
export type FormSection = { kind: 'form'; source?: Source; fields: Field[]; submit: Action; secondary?: Action[] };
export type ChartSection = {
  kind: 'chart';
  chart: 'line' | 'area' | 'bar' | 'pie';
  source: Source;
  x: Path;
  series: { label: string; value: Path }[];
  unit?: string;
};
export type ActionsSection = { kind: 'actions'; actions: Action[] };
export type TabsSection = { kind: 'tabs'; tabs: { label: string; sections: Section[] }[] };
export type NoticeSection = { kind: 'notice'; tone: Tone; text: string };
export type Section = { id: string; title?: string; when?: Expr } & (
  | StatsSection | TableSection | DetailSection | FormSection | ChartSection | ActionsSection | TabsSection | NoticeSection
);
export interface PageDef {
  schema: string;
  service: string;
  page: string;
  title: string;
  description?: string;
  /** What the page is about; anything but an org or an environment is about the whole system. */
  scope: 'org' | 'env' | (string & {});
  params?: { name: string; required?: boolean }[];
  refresh_s?: number;
  live_types?: string[];
  sections: Section[];
}
