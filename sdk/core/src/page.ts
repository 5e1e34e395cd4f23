/** Page kinds an author writes (house 16); the kernel turns them into the wire form of G-K-18. */
export interface ColumnDecl {
  readonly field: string;
  readonly label: string;
  readonly as?: 'text' | 'number' | 'bytes' | 'percent' | 'duration_s' | 'datetime' | 'bool' | 'json' | 'status' | 'code';
  /** Tone per value, for `status`. */
  readonly tones?: Readonly<Record<string, 'ok' | 'warn' | 'bad' | 'info' | 'muted'>>;
}

/** A figure; with `history`, a line of what it was, or of how it changed, since somebody began to look. It needs a page that refreshes. */
export interface FigureDecl extends ColumnDecl {
  readonly history?: 'value' | 'change';
}

interface PageBase {
  readonly title: string;
  readonly description?: string;
  /** Which target the console attaches; `env` when absent. */
  readonly scope?: 'platform' | 'org' | 'env';
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
  readonly columns: readonly ColumnDecl[];
  readonly filters?: readonly string[];
  readonly empty?: string;
  /** What a row shows of itself when it is opened. */
  readonly rowDetail?: readonly ColumnDecl[];
}

export interface RowAction {
  readonly route: string;
  readonly label: string;
  readonly confirm?: string;
  readonly tone?: 'ok' | 'warn' | 'bad';
  /** `show` puts the answer before the reader. */
  readonly then?: 'reload' | 'show';
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

export type PageDecl =
  | (PageBase &
      Rows & {
        readonly kind: 'table' | 'feed';
        readonly create?: string;
        readonly update?: string;
        readonly remove?: string;
        readonly rowActions?: readonly (string | RowAction)[];
        readonly actions?: readonly PageAction[];
      })
  | (PageBase & { readonly kind: 'detail'; readonly source: string; readonly fields: readonly ColumnDecl[] })
  | (PageBase & { readonly kind: 'form'; readonly submit: string; readonly source?: string })
  | (PageBase & { readonly kind: 'stats'; readonly source: string; readonly items: readonly FigureDecl[] })
  | (PageBase & {
      readonly kind: 'chart';
      readonly chart: 'line' | 'area' | 'bar' | 'pie';
      readonly source: string;
      readonly x: string;
      readonly series: readonly { field: string; label: string }[];
      readonly unit?: string;
    })
  | (PageBase & { readonly kind: 'text'; readonly text: string })
  /** The policy administration that every service has: sets, relations, attributes and the latest decisions. */
  | (PageBase & { readonly kind: 'policy' })
  /** Queues, dead tasks and jobs of the service, which every one that has some gets by itself. */
  | (PageBase & { readonly kind: 'work' })
  | (PageBase & { readonly kind: 'tabs'; readonly tabs: readonly { readonly label: string; readonly page: string }[] });
