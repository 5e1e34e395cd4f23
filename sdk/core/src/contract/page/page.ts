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
}

/** A figure; with `history`, a line of what it was, or of how it changed, since somebody began to look. It needs a page that refreshes. */
export interface FigureDecl extends ColumnDecl {
  readonly history?: 'value' | 'change';
}

interface PageBase {
  readonly title: string;
  readonly icon?: IconName;
  readonly description?: string;
  /** Which target the console attaches; `env` when absent. */
  readonly scope?: (typeof PAGE_SCOPES)[number];
  /** Where the page stands in the navigation; `false` keeps it out. */
  readonly nav?: number | false;
  /** Event names that reload the page. */
  readonly live?: readonly string[];
  /** Seconds after which the page reads again, while somebody looks at it. */
  readonly refresh?: number;
}

/** Member of the row that names it; goes into the path parameter of row actions. */
interface Rows {
  readonly source: string;
  readonly key?: string;
  /** A figure of a table may have its `history` too. */
  readonly columns: readonly FigureDecl[];
  readonly filters?: readonly string[];
  readonly empty?: string;
  /** What a row shows of itself when it is opened. */
  readonly rowDetail?: readonly ColumnDecl[];
  /** The `record` page that the first column leads to; its path parameter is the row's `key`. */
  readonly open?: string;
}

export interface RowAction {
  readonly route: string;
  readonly label: string;
  /** Asked before the call; `{member}` names what the row holds there. */
  readonly confirm?: string;
  readonly tone?: 'ok' | 'warn' | 'bad';
  /** `show` puts the answer before the reader; a page is gone to. */
  readonly then?: 'reload' | 'show' | { readonly page: string };
  /** Values sent without asking. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly when?: { readonly field: string; readonly is: unknown };
}

/** What is done to the page's resource as a whole; a route with a body opens a form. `show` puts the answer before the reader. */
export interface PageAction {
  readonly route: string;
  readonly label: string;
  readonly confirm?: string;
  readonly tone?: 'ok' | 'warn' | 'bad';
  readonly then?: 'reload' | 'show';
}

type Stats = { readonly kind: 'stats'; readonly source: string; readonly items: readonly FigureDecl[] };
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
  /** The policy administration that every service has: sets, relations, attributes and the latest decisions. */
  | (PageBase & { readonly kind: 'policy' })
  /** Queues, dead tasks and jobs of the service, which every one that has some gets by itself. */
  | (PageBase & { readonly kind: 'work' })
  | (PageBase & { readonly kind: 'tabs'; readonly tabs: readonly { readonly label: string; readonly page: string }[] });
