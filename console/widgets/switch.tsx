import { useState } from 'react';

export function Switch({ label, on, change }: { label: string; on: boolean; change(on: boolean): Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    await change(!on);
    setBusy(false);
  };
  return (
    <button type="button" role="switch" className="switch-control" aria-checked={on} aria-label={label} disabled={busy} onClick={press}>
      <span aria-hidden="true" />
    </button>
  );
}
