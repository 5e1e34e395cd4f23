interface TableFootProps {
  readonly count: number;
  /** What a row is, singular: it takes an s. */
  readonly noun: string;
  readonly more: boolean;
  readonly busy: boolean;
  readonly onMore: () => void;
}

/** How many rows are shown, and the way to more. */
export function TableFoot({ count, noun, more, busy, onMore }: TableFootProps) {
  return (
    <footer className="table-foot">
      <span className="sub" aria-live="polite">
        {count}
        {more ? ' or more' : ''} {count === 1 ? noun : `${noun}s`}
      </span>
      {more && (
        <button type="button" className="btn" disabled={busy} onClick={onMore}>
          {busy ? 'Loading…' : 'Load more'}
        </button>
      )}
    </footer>
  );
}
