import { useEffect, useRef, useState } from 'react';
import type { LiveState } from '../api/live/live-channel.ts';
import { NotMemberPage } from '../pages/not-member-page.tsx';
import { BootstrapPage } from '../pages/bootstrap-page.tsx';
import { ErrorBoundary } from '../widgets/page/error-boundary.tsx';
import { Icon } from '../widgets/icon.tsx';
import { useHash, useNarrow } from './browser-state.ts';
import { useConsole } from './console-context.ts';
import type { Membership } from './navigation/gates.ts';
import { InboxBell } from './inbox-bell.tsx';
import { LiveIndicator } from './live-indicator.tsx';
import { Rail } from './rail/rail.tsx';
import { Screen } from './screen.tsx';
import { TenantSwitcher } from './navigation/tenant-switcher.tsx';
import { ThemeToggle } from './theme-toggle.tsx';
import { UserMenu } from './navigation/user-menu.tsx';

/** The frame around every screen. */
export function Shell({ membership, settle, liveState }: { membership: Membership; settle(): Promise<void>; liveState: LiveState }) {
  const { route, client } = useConsole();
  const hash = useHash();
  const narrow = useNarrow();
  const main = useRef<HTMLElement>(null);
  const drawer = useRef<HTMLDialogElement>(null);
  const first = useRef(true);
  const [switching, setSwitching] = useState(false);

  useEffect(() => {
    drawer.current?.close();
    if (first.current) {
      first.current = false;
      return;
    }
    scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [hash]);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setSwitching(true);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);

  const openSwitcher = () => {
    drawer.current?.close();
    setSwitching(true);
  };

  return (
    <div className="shell">
      <a
        className="skip"
        href="#main"
        onClick={event => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to content
      </a>
      {narrow ? (
        <dialog
          ref={drawer}
          className="drawer"
          aria-label="Navigation"
          onClick={event => event.target === drawer.current && drawer.current?.close()}
        >
          <Rail openSwitcher={openSwitcher} close={() => drawer.current?.close()} />
        </dialog>
      ) : (
        <Rail openSwitcher={openSwitcher} />
      )}
      <div className="stage">
        <header className="topbar">
          {narrow && (
            <button type="button" className="btn quiet icon" aria-label="Open navigation" onClick={() => drawer.current?.showModal()}>
              <Icon name="menu" />
            </button>
          )}
          <span className="push" />
          <InboxBell />
          <LiveIndicator state={liveState} />
          <ThemeToggle />
          <UserMenu />
        </header>
        <main id="main" ref={main} tabIndex={-1}>
          {membership.kind === 'unknown' && (
            <p className="notice" data-tone="warn">
              Your organizations could not be loaded ({membership.problem.message}).{' '}
              <button type="button" className="link" onClick={settle}>
                Try again
              </button>
            </p>
          )}
          <ErrorBoundary key={hash} action={() => client.action}>
            {membership.kind !== 'not_member' || route.name === 'org-create' || (route.name === 'bootstrap' && route.invitation) ? (
              <Screen route={route} />
            ) : route.name === 'bootstrap' ? (
              <BootstrapPage settle={settle} />
            ) : (
              <NotMemberPage settle={settle} />
            )}
          </ErrorBoundary>
        </main>
      </div>
      {switching && <TenantSwitcher close={() => setSwitching(false)} />}
    </div>
  );
}
