import { type ReactNode, useId } from 'react';
import type { Action } from '../../api/page-def.ts';
import { ActionButton } from '../action-button.tsx';
import { Icon } from '../icon.tsx';
import type { TemplateScope } from '../page/template.ts';

const BESIDE = 2;

/** Two buttons in the row; any others behind them in a menu. */
export function RowActions({ actions, scope, children }: { actions: readonly Action[]; scope: TemplateScope; children?: ReactNode }) {
  const id = useId();
  const shown = actions.length > BESIDE ? actions.slice(0, 1) : actions;
  const hidden = actions.slice(shown.length);
  return (
    <div className="row end tight">
      {children}
      {shown.map(action => (
        <ActionButton key={action.id} action={action} scope={scope} className="btn small" />
      ))}
      {hidden.length > 0 && (
        <span className="row-menu">
          <button type="button" className="btn quiet icon small" popoverTarget={id} aria-label="More actions">
            <Icon name="more" />
          </button>
          <div id={id} popover="auto" className="menu" onToggle={place}>
            {hidden.map(action => (
              <ActionButton key={action.id} action={action} scope={scope} className="menu-item" />
            ))}
          </div>
        </span>
      )}
    </div>
  );
}

/** A popover lies in the top layer, so it is put beside its button by hand. */
function place({ currentTarget: menu }: React.ToggleEvent<HTMLDivElement>): void {
  const button = menu.previousElementSibling?.getBoundingClientRect();
  if (!button) return;
  const below = button.bottom + 4 + menu.offsetHeight < innerHeight;
  menu.style.top = `${below ? button.bottom + 4 : button.top - menu.offsetHeight - 4}px`;
  menu.style.left = `${Math.max(8, button.right - menu.offsetWidth)}px`;
}
