import { monogram } from '../../widgets/icon.tsx';
import { useConsole } from '../console-context.ts';

export function UserMenu() {
  const { session, bootstrap } = useConsole();
  const { display_name, email } = session.user;
  const name = display_name || email;
  return (
    <div className="user-menu">
      <button type="button" className="avatar" popoverTarget="account" aria-label={`Account of ${name}`}>
        {monogram(name)}
      </button>
      <div id="account" popover="auto" className="menu" role="group" aria-label="Account">
        <p className="menu-head">
          <strong>{name}</strong>
          {name !== email && <span className="sub">{email}</span>}
          {bootstrap?.platform_admin && (
            <span className="badge" data-tone="info">
              Platform administrator
            </span>
          )}
        </p>
        <a className="menu-item" href="#/bootstrap">
          Your access
        </a>
        <a className="menu-item" href="#/sign-out">
          Sign out
        </a>
        <a className="menu-item" href="#/sign-out/everywhere">
          Sign out everywhere
        </a>
      </div>
    </div>
  );
}
