import { useMemo, useState } from 'react';
import { Dialog } from '../../widgets/dialog/dialog.tsx';
import { Icon, monogram } from '../../widgets/icon.tsx';
import { useConsole } from '../console-context.ts';
import { hrefOf, routeElsewhere } from './route.ts';

/** Find an org or an environment by typing; arrows move, Enter goes there and stays on the same kind of screen. */
export function TenantSwitcher({ close }: { close(): void }) {
  const { bootstrap, route, place } = useConsole();
  const [wanted, setWanted] = useState('');
  const needle = wanted.trim().toLowerCase();
  const orgs = useMemo(() => {
    const matches = (...texts: string[]) => texts.some(text => text.toLowerCase().includes(needle));
    return (bootstrap?.orgs ?? []).flatMap(org => {
      const whole = matches(org.display_name, org.slug);
      const envs = org.envs.filter(env => whole || matches(env.display_name, env.slug));
      return whole || envs.length ? [{ org, envs }] : [];
    });
  }, [bootstrap, needle]);

  const move = (event: React.KeyboardEvent<HTMLElement>) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    event.preventDefault();
    const stops = [...event.currentTarget.querySelectorAll<HTMLElement>('input, a')];
    const at = stops.indexOf(document.activeElement as HTMLElement);
    stops[(at + (event.key === 'ArrowDown' ? 1 : stops.length - 1)) % stops.length]?.focus();
  };

  return (
    <Dialog title="Switch organization or environment" close={close}>
      <div className="switch" onKeyDown={move}>
        <input
          className="input"
          type="search"
          aria-label="Find an organization or environment"
          placeholder="Find by name or slug"
          autoFocus
          value={wanted}
          onChange={event => setWanted(event.target.value)}
          onKeyDown={event => {
            if (event.key === 'Enter') event.currentTarget.closest('.switch')?.querySelector<HTMLElement>('.switch-list a')?.click();
          }}
        />
        <div className="switch-list">
          {orgs.length === 0 && <p className="sub pad">Nothing here is called that.</p>}
          {orgs.map(({ org, envs }) => (
            <section key={org.org_id} aria-label={org.display_name}>
              <a
                className="switch-item"
                href={routeElsewhere(route, { org: org.org_id })}
                onClick={close}
                aria-current={place.org === org.org_id && !place.env ? 'true' : undefined}
              >
                <span className="mono-mark" aria-hidden="true">
                  {monogram(org.display_name)}
                </span>
                <strong>{org.display_name}</strong>
                <code>{org.slug}</code>
              </a>
              {envs.map(env => (
                <a
                  key={env.env_id}
                  className="switch-item inner"
                  href={routeElsewhere(route, { env: env.env_id })}
                  onClick={close}
                  aria-current={place.env === env.env_id ? 'true' : undefined}
                >
                  <Icon name="layers" />
                  <span>{env.display_name}</span>
                  <code>{env.slug}</code>
                  {env.status !== 'active' && (
                    <span className="badge" data-tone="muted">
                      {env.status}
                    </span>
                  )}
                </a>
              ))}
            </section>
          ))}
        </div>
        <p className="switch-foot">
          <a href={hrefOf('org/create')} onClick={close}>
            Create organization
          </a>
          {place.org && (
            <a href={hrefOf('env/create', { org: place.org })} onClick={close}>
              Create environment
            </a>
          )}
        </p>
      </div>
    </Dialog>
  );
}
