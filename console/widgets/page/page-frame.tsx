import { type ReactNode, useEffect } from 'react';

interface PageFrameProps {
  title: string;
  /** What stands above the title, such as the org of an environment. */
  above?: ReactNode;
  description?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function PageFrame({ title, above, description, actions, children }: PageFrameProps) {
  useEffect(() => {
    document.title = `${title} · Console`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        <div>
          {above && <p className="crumb">{above}</p>}
          <h1>{title}</h1>
          {description && <p className="lede">{description}</p>}
        </div>
        {actions && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
