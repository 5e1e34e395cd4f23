import type { Env, Org, Subject } from '../../api/registry-api.ts';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { useLoaded } from '../../shell/loading/use-loaded.ts';
import { Card } from '../../widgets/card.tsx';
import { CopyableCode } from '../../widgets/value/copyable-code.tsx';
import { Form } from '../../widgets/form/form.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { Absent, LoadedView } from '../../widgets/page/page-state.tsx';
import { StatusBadge } from '../../widgets/value/status-badge.tsx';
import { TenantEndings } from '../../widgets/dialog/tenant-endings.tsx';
import type { Field } from '../../api/page-def.ts';

const NAME: readonly Field[] = [{ name: 'display_name', label: 'Name', type: 'text', required: true, max: 120 }];

export function SettingsPage({ subject }: { subject: Subject }) {
  const { registry, client, refresh, notify, config } = useConsole();
  const loaded = useLoaded(`${subject.kind} ${subject.id}`, signal => registry.read<Org | Env>(subject, signal));
  const what = subject.kind === 'org' ? 'organization' : 'environment';
  const isSystem = subject.id === config.system.org_id || subject.id === config.system.env_id;
  if (loaded.problem?.absent) return <Absent what={`This ${what}`} />;

  const after = async (text: string) => {
    notify(text);
    loaded.reload();
    await refresh();
  };
  return (
    <PageFrame
      title={`${subject.kind === 'org' ? 'Organization' : 'Environment'} settings`}
      actions={
        subject.kind === 'org' && (
          <a className="btn" href={hrefOf('members', { org: subject.id })}>
            Members
          </a>
        )
      }
      above={<a href={hrefOf('home', { [subject.kind]: subject.id })}>{loaded.data?.display_name ?? 'Overview'}</a>}
    >
      <LoadedView of={loaded}>
        {record => (
          <>
            <Card title="Rename" note="Shown everywhere people meet it. The slug stays.">
              <Form
                key={record.display_name}
                fields={NAME}
                initial={record}
                submitLabel="Save name"
                submit={async ({ display_name }) => {
                  client.beginAction();
                  await registry.rename(subject, String(display_name));
                  await after('Name saved');
                }}
              />
            </Card>
            <Card title="Identifiers">
              <dl className="detail">
                <div>
                  <dt>Slug</dt>
                  <dd>
                    <code>{record.slug}</code>
                  </dd>
                </div>
                <div>
                  <dt>Status</dt>
                  <dd>
                    <StatusBadge status={record.status} />
                  </dd>
                </div>
                <div>
                  <dt>Id</dt>
                  <dd>
                    <CopyableCode text={subject.id} label={`${what} id`} />
                  </dd>
                </div>
              </dl>
            </Card>
            {!isSystem && (
              <TenantEndings
                subject={subject}
                record={record}
                changed={after}
                gone={async text => {
                  notify(text);
                  window.location.hash = subject.kind === 'env' && 'org_id' in record ? hrefOf('home', { org: record.org_id }) : '#/';
                  await refresh();
                }}
              />
            )}
          </>
        )}
      </LoadedView>
    </PageFrame>
  );
}
