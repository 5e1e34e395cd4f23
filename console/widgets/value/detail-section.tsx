import type { DetailSection as Definition } from '../../api/page-def.ts';
import { ActionButton } from '../action-button.tsx';
import { Card } from '../card.tsx';
import { holds } from '../page/condition.ts';
import { DetailList } from './detail-list.tsx';
import { usePageHost } from '../page/page-host.ts';
import { LoadedView } from '../page/page-state.tsx';
import { fillText } from '../page/template.ts';
import { useSource } from '../page/use-source.ts';

export function DetailSection({ section, title }: { section: Definition; title?: string | undefined }) {
  const { params } = usePageHost();
  const loaded = useSource(section.source);
  const row = loaded.data;
  const actions = row === undefined ? [] : (section.actions ?? []).filter(({ when }) => holds(when, row));
  return (
    <Card
      title={title && fillText(title, { row, params })}
      actions={actions.length > 0 && actions.map(action => <ActionButton key={action.id} action={action} scope={{ row, params }} />)}
    >
      <LoadedView of={loaded}>{data => <DetailList of={data} fields={section.fields} />}</LoadedView>
    </Card>
  );
}
