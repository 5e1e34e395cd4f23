import { useId, useState } from 'react';
import { Icon, type IconName, isIconName, monogram } from '../../widgets/icon.tsx';
import { useHash, useNarrow } from '../browser-state.ts';
import { useConsole } from '../console-context.ts';
import { featureEnabled } from '../navigation/gates.ts';
import { navGroups } from './nav-groups.ts';
import { isWhole } from '../navigation/place.ts';
import { hrefOf } from '../navigation/route.ts';

const COLLAPSED = 'dash.rail.collapsed';

interface Item {
  readonly label: string;
  readonly href: string;
  readonly icon?: IconName | undefined;
}

/** The navigation: places first, then what the registered services declared for this environment. */
export function Rail({ openSwitcher, close }: { openSwitcher(): void; close?: () => void }) {
  const { bootstrap, services = [], features, place } = useConsole();
  const narrow = useNarrow();
  const [folded, setFolded] = useState(() => localStorage.getItem(COLLAPSED) === 'true');
  const collapsed = folded && !narrow;
  const org = bootstrap?.orgs.find(({ org_id }) => org_id === place.org);
  const env = org?.envs.find(({ env_id }) => env_id === place.env);
  const fold = () => {
    localStorage.setItem(COLLAPSED, String(!folded));
    setFolded(!folded);
  };

  const orgItems: Item[] = place.org
    ? [
        { label: 'Overview', icon: 'building', href: hrefOf('home', { org: place.org }) },
        { label: 'Members', icon: 'users', href: hrefOf('members', { org: place.org }) },
        { label: 'Settings', icon: 'gear', href: hrefOf('settings', { org: place.org }) },
        { label: 'Branding', icon: 'palette', href: hrefOf('branding', { org: place.org }) },
      ]
    : [];
  const envItems: Item[] = place.env
    ? [
        { label: 'Overview', icon: 'layers', href: hrefOf('home', { env: place.env }) },
        { label: 'Audit', icon: 'scroll', href: hrefOf('audit', { env: place.env }) },
        { label: 'Settings', icon: 'gear', href: hrefOf('settings', { env: place.env }) },
        { label: 'Branding', icon: 'palette', href: hrefOf('branding', { env: place.env }) },
      ]
    : [];
  const system = bootstrap?.system;
  const atPlatform = system !== undefined && (place.org === system.org_id || place.env === system.env_id);
  const platformItems: Item[] =
    bootstrap?.platform_admin && system ? [{ label: 'Platform', icon: 'gear', href: hrefOf('home', { env: system.env_id }) }] : [];
  const where = place.env ? { env: place.env } : { org: place.org };
  const offered = (place.org || place.env ? services : []).filter(
    ({ service, nav }) => nav.some(item => !isWhole(item) || atPlatform) && featureEnabled(features, service),
  );

  return (
    <nav className="rail" aria-label="Console" data-collapsed={collapsed || undefined}>
      <div className="rail-head">
        <a className="brand" href="#/" aria-label="Organizations, home of the console">
          <img src="/icon.svg" alt="" width="24" height="24" />
          <span>Console</span>
        </a>
        {close ? (
          <button type="button" className="btn quiet icon" aria-label="Close navigation" onClick={close}>
            <Icon name="close" />
          </button>
        ) : (
          <button
            type="button"
            className="btn quiet icon"
            aria-expanded={!collapsed}
            aria-label={collapsed ? 'Expand navigation' : 'Collapse navigation'}
            onClick={fold}
          >
            <Icon name="sidebar" />
          </button>
        )}
      </div>
      <button
        type="button"
        className="switcher"
        onClick={openSwitcher}
        aria-label={`Switch organization or environment, now ${
          [org?.display_name, env?.display_name].filter(Boolean).join(', ') || 'none'
        }`}
        title="Switch (Ctrl K)"
      >
        <span className="mono-mark" aria-hidden="true">
          {monogram(org?.display_name ?? '–')}
        </span>
        <span className="switcher-text">
          <strong>{org?.display_name ?? (place.org || place.env ? 'Organization' : 'No organization')}</strong>
          <span className="sub">{env?.display_name ?? (place.env ? 'Environment' : 'All environments')}</span>
        </span>
        <Icon name="updown" />
      </button>
      <div className="rail-scroll">
        <Group items={[{ label: 'Organizations', icon: 'grid', href: '#/' }, ...platformItems]} collapsed={collapsed} />
        <Group title="Organization" items={orgItems} collapsed={collapsed} />
        <Group title="Environment" items={envItems} collapsed={collapsed} />
        {offered.flatMap(entry =>
          navGroups({ label: entry.label, nav: entry.nav.filter(item => !isWhole(item) || atPlatform) }).map(({ title, entries }) => (
            <Group
              key={`${entry.vertical}/${entry.service}/${title}`}
              title={title}
              down={entry.health === 'down'}
              collapsed={collapsed}
              items={entries.map(item => ({
                label: item.label,
                icon: item.icon && isIconName(item.icon) ? item.icon : undefined,
                href: hrefOf(`${entry.service}/${item.page}`, where),
              }))}
            />
          )),
        )}
      </div>
    </nav>
  );
}

function Group({ title, items, collapsed, down }: { title?: string; down?: boolean; items: readonly Item[]; collapsed: boolean }) {
  const id = useId();
  const hash = useHash() || '#/';
  if (items.length === 0) return null;
  return (
    <div className="rail-group">
      {title && (
        <h2 className="rail-title">
          <span id={id}>{title}</span>
          {down && (
            <span className="badge" data-tone="bad">
              down
            </span>
          )}
        </h2>
      )}
      <ul aria-labelledby={title ? id : undefined}>
        {items.map(({ label, href, icon }) => (
          <li key={href}>
            <a
              className="rail-item"
              href={href}
              aria-current={isCurrent(hash, href) ? 'page' : undefined}
              {...(collapsed ? { title: title ? `${title}: ${label}` : label } : {})}
            >
              {icon ? (
                <Icon name={icon} />
              ) : (
                <span className="mark" aria-hidden="true">
                  {monogram(label)}
                </span>
              )}
              <span className="rail-label">{label}</span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A page of a service stays current while its props change. */
function isCurrent(hash: string, href: string): boolean {
  if (hash === href) return true;
  const named = /^#\/(home|members|settings|branding|audit|env|org)?(\?|\/|$)/.test(href);
  return !named && hash.split('?')[0] === href.split('?')[0];
}
