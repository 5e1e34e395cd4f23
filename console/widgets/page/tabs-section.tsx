import { type ReactNode, useId, useState } from 'react';
import type { Section, TabsSection as Definition } from '../../api/page-def.ts';

interface Tabs {
  section: Definition;
  title?: string | undefined;
  /** Draws what stands on a tab; `key` tells one tab's from another's. */
  show(sections: readonly Section[], key: number): ReactNode;
}

/** Arrow keys move between tabs; only the chosen one reads its data. */
export function TabsSection({ section, title, show }: Tabs) {
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const last = section.tabs.length - 1;
  const onKey = (event: React.KeyboardEvent<HTMLElement>) => {
    const next = { ArrowRight: chosen === last ? 0 : chosen + 1, ArrowLeft: chosen === 0 ? last : chosen - 1, Home: 0, End: last }[
      event.key
    ];
    if (next === undefined) return;
    event.preventDefault();
    setChosen(next);
    event.currentTarget.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus();
  };
  const tab = section.tabs[chosen];
  return (
    <section className="tabs-section" aria-label={title}>
      <div className="tabs" role="tablist" aria-label={title ?? 'Views'} onKeyDown={onKey}>
        {section.tabs.map(({ label }, index) => (
          <button
            key={label}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-controls={`${id}-panel`}
            aria-selected={index === chosen}
            tabIndex={index === chosen ? 0 : -1}
            onClick={() => setChosen(index)}
          >
            {label}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${chosen}`}>
        {tab && show(tab.sections, chosen)}
      </div>
    </section>
  );
}
