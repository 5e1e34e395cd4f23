import type { IconName } from './icon.ts';

/*
 * Page kinds an author writes (house 16); the kernel turns them into the wire form of G-K-18.
 */

/** How a value is shown. `ago` says how long it is since; `html` shows somebody else's document in a frame that runs nothing. */
export const FORMATS = [
  'text',
  'number',
  'bytes',
  'percent',
  'duration_s',
  'datetime',
  'ago',
  'bool',
  'json',
  'status',
  'code',
  'html',
] as const;
export const TONES = ['ok', 'warn', 'bad', 'info', 'muted'] as const;
export const CHARTS = ['line', 'area', 'bar', 'pie'] as const;
/** What a page is about, and so which target the console names. */
export const PAGE_SCOPES = ['platform', 'org', 'env'] as const;
export type Tone = (typeof TONES)[number];

export interface ColumnDecl {
  readonly field: string;
  readonly label: string;
  readonly as?: (typeof FORMATS)[number];
  /** Tone per value, for `status`. */
  readonly tones?: Readonly<Record<string, Tone>>;
  /** Where the value leads, in a table, a record or beside other figures. */
  readonly link?: LinkDecl;
}

/** A figure; with `history`, a line of what it was, or of how it changed, since somebody began to look. It needs a page that refreshes. */
export interface FigureDecl extends ColumnDecl {
  readonly history?: 'value' | 'change';
}

/** A figure beside which stands how it moved: the member `trend` is a difference, or a list of what it was. */
export interface StatDecl extends FigureDecl {
  readonly trend?: string;
}

/** A page that is gone to, of this service or of `service`. In its parameters `{member}` is what the row holds there. */
export interface LinkDecl {
  readonly page: string;
  readonly service?: string;
  readonly params?: Readonly<Record<string, string>>;
}

/** A column of a table: a figure may have its `history`. */
export type RowColumn = FigureDecl;

interface PageBase {
  readonly title: string;
  readonly icon?: IconName;
  readonly description?: string;
  /** Which target the console attaches; `env` when absent. */
  readonly scope?: (typeof PAGE_SCOPES)[number];
  /** Where the page stands in the navigation; `false` keeps it out. */
  readonly nav?: number | false;
  /** The heading in the navigation under which pages of the service stand together; under the service's own without. */
  readonly group?: string;
  /** Event names that reload the page. */
  readonly live?: readonly string[];
  /** Seconds after which the page reads again, while somebody looks at it. */
  readonly refresh?: number;
  /** What its address may say; goes to every source whose query has a member of that name. A record has its id without this. */
  readonly params?: readonly PageParameter[];
}

export interface PageParameter {
  readonly name: string;
  readonly required?: boolean;
}

/** Member of the row that names it; goes into the path parameter of row actions. */
interface Rows {
  readonly source: string;
  readonly key?: string;
  readonly columns: readonly RowColumn[];
  /** The text member of the source's query that looks for words; it stands before the filters. */
  readonly search?: string;
  readonly filters?: readonly string[];
  /** Columns whose heads sort the table; the source's query has `sort`, with these values, and `order`: see `SortQuery`. */
  readonly sort?: readonly string[];
  readonly empty?: string;
  /** What a row shows of itself when it is opened. */
  readonly rowDetail?: readonly ColumnDecl[];
  /** The `record` page that the first column leads to; its path parameter is the row's `key`. */
  readonly open?: string;
}

interface ActionBase {
  readonly route: string;
  readonly label: string;
  readonly tone?: 'ok' | 'warn' | 'bad';
  /** `show` puts the answer before the reader; a page is gone to. */
  readonly then?: 'reload' | 'show' | LinkDecl;
  /** Values sent without asking. A route with a body and no values here opens a form. */
  readonly body?: Readonly<Record<string, unknown>>;
  /** An action of this contract; who may not do it is not shown the control. The route's gate decides all the same. */
  readonly requires?: string;
}

export interface RowAction extends ActionBase {
  /** Asked before the call; `{member}` names what the row holds there. */
  readonly confirm?: string;
  /** Offered only for rows that hold this. */
  readonly when?: { readonly field: string; readonly is: unknown };
}

/** What is done to the page's resource as a whole. */
export interface PageAction extends ActionBase {
  readonly confirm?: string;
  /** Offered only while the page's parameter `field` says this. */
  readonly when?: { readonly field: string; readonly is: unknown };
}

type Stats = { readonly kind: 'stats'; readonly source: string; readonly items: readonly StatDecl[] };
type Chart = {
  readonly kind: 'chart';
  readonly chart: (typeof CHARTS)[number];
  readonly source: string;
  readonly x: string;
  readonly series: readonly { field: string; label: string }[];
  readonly unit?: string;
};
type Text = { readonly kind: 'text'; readonly text: string };
type Detail = { readonly kind: 'detail'; readonly source: string; readonly fields: readonly ColumnDecl[] };

/** One part of a `board`, with a source of its own. */
export type BoardSection = { readonly title?: string } & (
  | Stats
  | Chart
  | Text
  | Detail
  | (Rows & { readonly kind: 'table'; readonly rowActions?: readonly (string | RowAction)[] })
);

/**
 * One part of a `record`. Its source takes the record's id as a path parameter, or as the query member that `by` names; a detail without a
 * source shows more of the record itself. Row actions are given the row's key.
 */
export type RecordTab = { readonly label: string } & (
  | (Rows & {
      readonly kind: 'table';
      readonly by?: string;
      readonly create?: string;
      readonly rowActions?: readonly (string | RowAction)[];
    })
  | { readonly kind: 'detail'; readonly source?: string; readonly by?: string; readonly fields: readonly ColumnDecl[] }
);

export type PageDecl =
  /** Several parts on one page. */
  | (PageBase & { readonly kind: 'board'; readonly sections: readonly BoardSection[] })
  /** One thing, opened from its row: `source` takes its id as a path parameter. `heading` may name members: `{name}`. */
  | (PageBase & {
      readonly kind: 'record';
      readonly source: string;
      readonly heading?: string;
      readonly fields: readonly ColumnDecl[];
      readonly actions?: readonly RowAction[];
      readonly tabs?: readonly RecordTab[];
    })
  | (PageBase &
      Rows & {
        readonly kind: 'table' | 'feed';
        /** Done to every chosen row, one after the other. */
        readonly bulkActions?: readonly (string | RowAction)[];
        readonly create?: string;
        readonly update?: string;
        readonly remove?: string;
        readonly rowActions?: readonly (string | RowAction)[];
        readonly actions?: readonly PageAction[];
      })
  | (PageBase & Detail)
  | (PageBase & { readonly kind: 'form'; readonly submit: string; readonly source?: string })
  | (PageBase & Stats)
  | (PageBase & Chart)
  | (PageBase & Text)
  /** The policy administration that every service has: sets, relations, attributes and the latest decisions, or one of these alone. */
  | (PageBase & { readonly kind: 'policy'; readonly only?: 'relations' | 'attributes' })
  /** Queues, dead tasks and jobs of the service, which every one that has some gets by itself. */
  | (PageBase & { readonly kind: 'work' })
  | (PageBase & { readonly kind: 'tabs'; readonly tabs: readonly { readonly label: string; readonly page: string }[] });
