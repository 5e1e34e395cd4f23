import { useState } from 'react';

export function Switch({
  label,
  on,
  fixed = false,
  change,
}: {
  label: string;
  on: boolean /** Cannot be changed here. */;
  fixed?: boolean;
  change(on: boolean): Promise<void>;
}) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    await change(!on);
    setBusy(false);
  };
  return (
    <button
      type="button"
      role="switch"
      className="switch-control"
      aria-checked={on}
      aria-label={label}
      disabled={busy || fixed}
      onClick={press}
    >
      <span aria-hidden="true" />
    </button>
  );
}
