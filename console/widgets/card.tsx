import { type ReactNode, useId } from 'react';

export function Card({
  title,
  note,
  actions,
  children,
  flush,
}: {
  title?: string | undefined;
  note?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  flush?: boolean;
}) {
  const id = useId();
  return (
    <section className="card" data-flush={flush || undefined} aria-labelledby={title ? id : undefined}>
      {(title || actions) && (
        <header className="card-head">
          <div>
            {title && <h2 id={id}>{title}</h2>}
            {note && <p className="sub">{note}</p>}
          </div>
          {actions && <div className="row">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
