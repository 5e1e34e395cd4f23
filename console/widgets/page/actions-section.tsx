import type { ActionsSection as Definition } from '../../api/page-def.ts';
import { ActionButton } from '../action-button.tsx';
import { Card } from '../card.tsx';
import { holds } from './condition.ts';
import { usePageHost } from './page-host.ts';

export function ActionsSection({ section, title }: { section: Definition; title?: string | undefined }) {
  const { params } = usePageHost();
  const buttons = (
    <div className="row wrap">
      {section.actions
        .filter(({ when }) => holds(when, params))
        .map(action => (
          <ActionButton key={action.id} action={action} scope={{ params }} className={`btn ${action.tone === 'bad' ? 'danger' : ''}`} />
        ))}
    </div>
  );
  return title ? <Card title={title}>{buttons}</Card> : buttons;
}
