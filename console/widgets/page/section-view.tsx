import type { Section } from '../../api/page-def.ts';
import { ActionsSection } from './actions-section.tsx';
import { Card } from '../card.tsx';
import { ChartSection } from '../chart/chart-section.tsx';
import { holds } from './condition.ts';
import { DetailSection } from '../value/detail-section.tsx';
import { FormSection } from '../form/form-section.tsx';
import { usePageHost } from './page-host.ts';
import { StatsSection } from '../chart/stats-section.tsx';
import { TableSection } from '../table/table-section.tsx';
import { TabsSection } from './tabs-section.tsx';

export function SectionList({ sections }: { sections: readonly Section[] }) {
  const { params } = usePageHost();
  return (
    <div className="sections">
      {sections
        .filter(({ when }) => holds(when, { params }, params))
        .map(section => (
          <SectionView key={section.id} section={section} />
        ))}
    </div>
  );
}

/** One kind, one widget; a kind this build does not know says so and harms nothing. */
function SectionView({ section }: { section: Section }) {
  switch (section.kind) {
    case 'stats':
      return <StatsSection section={section} title={section.title} />;
    case 'table':
      return <TableSection section={section} title={section.title} />;
    case 'detail':
      return <DetailSection section={section} title={section.title} />;
    case 'form':
      return (
        <Card title={section.title}>
          <FormSection section={section} />
        </Card>
      );
    case 'chart':
      return (
        <Card title={section.title}>
          <ChartSection section={section} title={section.title} />
        </Card>
      );
    case 'actions':
      return <ActionsSection section={section} title={section.title} />;
    case 'tabs':
      return (
        <TabsSection section={section} title={section.title} show={(sections, key) => <SectionList key={key} sections={sections} />} />
      );
    case 'notice':
      return (
        <div className="notice" data-tone={section.tone} role="note">
          {section.title && <strong>{section.title}</strong>}
          <p>{section.text}</p>
        </div>
      );
    default:
      return (
        <p className="notice" data-tone="muted">
          This part of the page is of a kind that this console does not know: {(section as { kind: string }).kind}
        </p>
      );
  }
}
