import { type ReactNode, useEffect, useId, useRef } from 'react';
import { Icon } from '../icon.tsx';

/** A modal: the browser keeps the focus inside and gives it back when it closes. */
export function Dialog({ title, close, children, wide }: { title: string; close(): void; children: ReactNode; wide?: boolean }) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      className="dialog"
      data-wide={wide || undefined}
      aria-labelledby={id}
      onCancel={event => {
        event.preventDefault();
        close();
      }}
      onClick={event => event.target === element.current && close()}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2 id={id}>{title}</h2>
          <button type="button" className="btn quiet icon" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
