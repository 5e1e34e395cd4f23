export function MoreButton({ label, busy, more }: { label: string; busy: boolean; more(): void }) {
  return (
    <footer className="table-foot">
      <button type="button" className="btn" disabled={busy} onClick={more}>
        {busy ? 'Loading…' : label}
      </button>
    </footer>
  );
}
