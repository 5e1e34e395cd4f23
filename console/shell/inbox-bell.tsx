import { useEffect, useState } from 'react';
import { Problem } from '../api/gateway/problem.ts';
import type { Inbox, ServiceEntry } from '../api/registry-api.ts';
import { Dialog } from '../widgets/dialog/dialog.tsx';
import { Icon } from '../widgets/icon.tsx';
import { valueAt } from '../widgets/page/path.ts';
import { Empty, LoadedView } from '../widgets/page/page-state.tsx';
import { Value } from '../widgets/value/value.tsx';
import { coalesced } from './loading/coalesced.ts';
import { useConsole } from './console-context.ts';
import { hrefOf } from './navigation/route.ts';
import { useLoaded } from './loading/use-loaded.ts';

type WithInbox = ServiceEntry & { readonly inbox: Inbox };
interface Listed {
  readonly items: readonly unknown[];
}

const SHOWN = 20;
const MOST = 99;

/**
 * What some service has for the person who is signed in: how much is unread, live, and the list behind it. Drawn for whatever service
 * declares an inbox.
 */
export function InboxBell() {
  const { services = [] } = useConsole();
  const service = services.find((entry): entry is WithInbox => entry.inbox !== undefined && entry.health !== 'down');
  return service ? <Bell service={service} /> : null;
}

function Bell({ service: { service, inbox } }: { service: WithInbox }) {
  const { client, live } = useConsole();
  const [open, setOpen] = useState(false);
  const { data, reload: count } = useLoaded(`unread ${service} ${inbox.unread}`, signal =>
    client.call<{ unread_count: number }>(service, inbox.unread, { signal }),
  );
  const unread = data?.unread_count;
  const liveTypes = JSON.stringify(inbox.live_types);
  useEffect(
    () =>
      // Two messages of one moment may tell of themselves in either order: the service knows the count.
      live.subscribe(
        JSON.parse(liveTypes) as string[],
        coalesced(async () => count(), 150),
      ),
    [count, live, liveTypes],
  );

  // Somebody who may not read it has no inbox.
  if (unread === undefined) return null;
  return (
    <>
      <button
        type="button"
        className="btn quiet icon bell"
        aria-label={unread === 0 ? 'Messages, none unread' : `Messages, ${unread} unread`}
        onClick={() => {
          count();
          setOpen(true);
        }}
      >
        <Icon name="bell" />
        {unread > 0 && (
          <span className="bell-count" aria-hidden="true">
            {unread > MOST ? `${MOST}+` : unread}
          </span>
        )}
      </button>
      {open && <InboxDialog service={service} inbox={inbox} unread={unread} changed={count} close={() => setOpen(false)} />}
    </>
  );
}

function InboxDialog({
  service,
  inbox,
  unread,
  changed,
  close,
}: {
  service: string;
  inbox: Inbox;
  unread: number;
  changed(): void;
  close(): void;
}) {
  const { client, config, notify } = useConsole();
  const [onlyUnread, setOnlyUnread] = useState(false);
  const loaded = useLoaded(JSON.stringify([service, onlyUnread, unread]), signal =>
    client.call<Listed>(service, inbox.list, { query: { limit: SHOWN, ...(onlyUnread ? { unread: 'true' } : {}) }, signal }),
  );

  const mark = async (path: string) => {
    try {
      client.beginAction();
      await client.call(service, path, { method: 'POST' });
      changed();
      loaded.reload();
    } catch (error) {
      notify(Problem.of(error).message, 'bad');
    }
  };
  return (
    <Dialog title="Messages" close={close} wide>
      <div className="row wrap">
        <label className="check">
          <input type="checkbox" checked={onlyUnread} onChange={event => setOnlyUnread(event.target.checked)} />
          <span>Unread only</span>
        </label>
        <span className="push" />
        {inbox.settings && (
          <a className="btn quiet" href={hrefOf(`${service}/${inbox.settings}`, { env: config.system.env_id })} onClick={close}>
            What is sent to me
          </a>
        )}
        <button type="button" className="btn" disabled={unread === 0} onClick={() => mark(inbox.read_all)}>
          Mark all read
        </button>
      </div>
      <LoadedView of={loaded}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={onlyUnread ? 'Everything is read' : 'No messages yet'} />
          ) : (
            <ul className="inbox-list">
              {items.map(item => (
                <Entry
                  key={String(valueAt(item, inbox.row.id))}
                  item={item}
                  inbox={inbox}
                  read={() => mark(inbox.read.replace('{id}', encodeURIComponent(String(valueAt(item, inbox.row.id)))))}
                />
              ))}
            </ul>
          )
        }
      </LoadedView>
    </Dialog>
  );
}

function Entry({ item, inbox: { row }, read }: { item: unknown; inbox: Inbox; read(): void }) {
  const isUnread = !valueAt(item, row.read_at);
  const title = String(valueAt(item, row.title) ?? '');
  const link = linkIn(row.links === undefined ? undefined : valueAt(item, row.links));
  return (
    <li data-unread={isUnread || undefined}>
      <span>
        <strong>{link ? <a href={link}>{title}</a> : title}</strong>
        <br />
        <span className="sub">
          <Value value={valueAt(item, row.at)} format="ago" />
        </span>
      </span>
      {isUnread && (
        <button type="button" className="btn small quiet" aria-label={`Mark ${title} read`} onClick={read}>
          Mark read
        </button>
      )}
    </li>
  );
}

/** The first address among the things that a message is about. Only what leads to a page is a link. */
function linkIn(links: unknown): string | undefined {
  const urls = Array.isArray(links) ? links.map(each => valueAt(each, 'url')) : [];
  return urls.find((url): url is string => typeof url === 'string' && /^(?:https:\/\/|#\/)/.test(url));
}
