import { type ReactNode, useState } from 'react';
import type { Tone } from '../../api/page-def.ts';
import { Problem } from '../../api/gateway/problem.ts';
import { Dialog } from './dialog.tsx';
import { FormAlert } from '../form/form-alert.tsx';

interface ConfirmDialogProps {
  title: string;
  text: string;
  label: string;
  tone?: Tone | undefined;
  /** Must be typed before the button works. */
  typed?: string;
  /** What the decision is about, below the text. */
  children?: ReactNode;
  /** Whether it can be confirmed at all; yes, when absent. */
  ready?: boolean;
  run(): Promise<void>;
  close(): void;
}

export function ConfirmDialog({ title, text, label, tone, typed, children, ready = true, run, close }: ConfirmDialogProps) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [entry, setEntry] = useState('');
  const confirm = async (event: React.FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await run();
      close();
    } catch (error) {
      setProblem(Problem.of(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} close={close}>
      <form className="stack" onSubmit={confirm}>
        <p>{text}</p>
        {children}
        {typed && (
          <label className="field">
            <span className="label">
              Type <code>{typed}</code> to confirm
            </span>
            <input className="input" value={entry} onChange={event => setEntry(event.target.value)} autoComplete="off" autoFocus />
          </label>
        )}
        {problem && <FormAlert problem={problem} />}
        <footer className="row end">
          <button type="button" className="btn" onClick={close} autoFocus={!typed}>
            Cancel
          </button>
          <button
            type="submit"
            className={`btn ${tone === 'bad' ? 'danger' : 'primary'}`}
            disabled={busy || !ready || (typed !== undefined && entry !== typed)}
          >
            {busy ? 'Working…' : label}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
