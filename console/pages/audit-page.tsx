import { useEffect, useState } from 'react';
import type { AuditEntry, AuditKey } from '../api/audit-trail.ts';
import type { Field } from '../api/page-def.ts';
import { Problem } from '../api/gateway/problem.ts';
import { useConsole } from '../shell/console-context.ts';
import { hrefOf } from '../shell/navigation/route.ts';
import { useLoaded } from '../shell/loading/use-loaded.ts';
import { Card } from '../widgets/card.tsx';
import { CopyableCode } from '../widgets/value/copyable-code.tsx';
import { FilterBar } from '../widgets/table/filter-bar.tsx';
import { Icon } from '../widgets/icon.tsx';
import { PageFrame } from '../widgets/page/page-frame.tsx';
import { Empty, LoadedView } from '../widgets/page/page-state.tsx';
import { StatusBadge } from '../widgets/value/status-badge.tsx';
import { TableFoot } from '../widgets/table/table-foot.tsx';
import { Value } from '../widgets/value/value.tsx';
import { useAuditVerification } from './audit-verification.tsx';

const FILTERS: readonly Field[] = [
  { name: 'service', label: 'Service', type: 'text' },
  { name: 'action', label: 'Action', type: 'text' },
];

export function AuditPage({ env, correlation }: { env: string; correlation?: string | undefined }) {
  const { audit, client, bootstrap, notify } = useConsole();
  const [filter, setFilter] = useState<{ service?: string; action?: string }>({});
  const { button, result } = useAuditVerification(env);
  const asked = { env_id: env, ...(correlation ? { correlation_id: correlation } : filter) };
  const [older, setOlder] = useState<{ items: readonly AuditEntry[]; next: AuditKey | null }>();
  const [busy, setBusy] = useState(false);
  const loaded = useLoaded(`audit ${JSON.stringify(asked)}`, signal => audit.read(asked, null, signal));
  useEffect(() => setOlder(undefined), [loaded.data]);

  const record = bootstrap?.orgs.flatMap(({ envs }) => envs).find(({ env_id }) => env_id === env);
  const next = older ? older.next : (loaded.data?.next ?? null);
  const loadMore = async () => {
    setBusy(true);
    try {
      const page = await audit.read(asked, next);
      setOlder({ items: [...(older?.items ?? []), ...page.items], next: page.next });
    } catch (error) {
      notify(Problem.of(error).message, 'bad');
    } finally {
      setBusy(false);
    }
  };
  return (
    <PageFrame
      title="Audit"
      above={<a href={hrefOf('home', { env })}>{record?.display_name ?? 'Environment'}</a>}
      description="Who did what, newest first."
      actions={
        <>
          {button}
          <button
            type="button"
            className="btn"
            onClick={() => {
              client.beginAction();
              loaded.reload();
            }}
          >
            <Icon name="refresh" />
            Refresh
          </button>
        </>
      }
    >
      {result}
      {loaded.data?.source === 'identity' && (
        <p className="notice" data-tone="info">
          The canonical trail did not answer; this is the identity service’s own.
        </p>
      )}
      <Card flush>
        {correlation ? (
          <p className="filters">
            <span>
              What belongs to <code>{correlation}</code>
            </span>
            <a className="btn small" href={hrefOf('audit', { env })}>
              Show everything
            </a>
          </p>
        ) : (
          <FilterBar fields={FILTERS} change={setFilter} />
        )}
        <LoadedView of={loaded}>
          {({ items }) => {
            const entries = [...items, ...(older?.items ?? [])];
            if (entries.length === 0)
              return <Empty title={Object.keys(asked).length > 1 ? 'Nothing matches these filters' : 'Nothing recorded yet'} />;
            return (
              <>
                <div className="table-wrap">
                  <table className="table">
                    <caption className="hidden">Audit events</caption>
                    <thead>
                      <tr>
                        <th scope="col">Time</th>
                        <th scope="col">Service</th>
                        <th scope="col">Action</th>
                        <th scope="col">Actor</th>
                        <th scope="col">Resource</th>
                        <th scope="col">Outcome</th>
                        <th scope="col">Correlation id</th>
                      </tr>
                    </thead>
                    <tbody>
                      {entries.map(entry => (
                        <Entry key={entry.audit_id} entry={entry} env={env} />
                      ))}
                    </tbody>
                  </table>
                </div>
                <TableFoot count={entries.length} noun="event" more={next !== null} busy={busy} onMore={loadMore} />
              </>
            );
          }}
        </LoadedView>
      </Card>
    </PageFrame>
  );
}

/** The trail keeps ids alone; who a person is, identity says to those who may ask. */
function ActorName({ actor, env }: { actor: AuditEntry['actor']; env: string }) {
  const { audit, client, notify } = useConsole();
  const [name, setName] = useState<string>();
  const ask = async () => {
    client.beginAction();
    try {
      const { display_name: shown, email } = await audit.actor(actor.id, env);
      setName(shown ? `${shown} (${email})` : email);
    } catch (error) {
      notify(Problem.of(error).message, 'bad');
    }
  };
  return (
    <>
      <span className="cut" title={actor.id}>
        {name ?? actor.id}
      </span>
      {actor.act && <span className="sub"> for {actor.act}</span>}
      {actor.kind === 'user' && name === undefined && (
        <button type="button" className="link" aria-label={`Name of ${actor.id}`} onClick={ask}>
          Name
        </button>
      )}
    </>
  );
}

function Entry({ entry, env }: { entry: AuditEntry; env: string }) {
  return (
    <tr>
      <td data-label="Time" className="nowrap">
        <Value value={entry.occurred_at ?? entry.ts} format="datetime" />
      </td>
      <td data-label="Service">
        <code>{entry.service}</code>
      </td>
      <td data-label="Action">{entry.action}</td>
      <td data-label="Actor">
        <ActorName actor={entry.actor} env={env} />
      </td>
      <td data-label="Resource">
        {entry.resource ? (
          <span className="cut" title={`${entry.resource.type} ${entry.resource.id}`}>
            {entry.resource.type} <code>{entry.resource.id}</code>
          </span>
        ) : (
          <span className="faint">–</span>
        )}
      </td>
      <td data-label="Outcome">
        <StatusBadge status={entry.outcome} />
      </td>
      <td data-label="Correlation id">
        <CopyableCode
          text={entry.correlation_id}
          label="correlation id"
          href={hrefOf('audit', { env, correlation: entry.correlation_id })}
        />
      </td>
    </tr>
  );
}
