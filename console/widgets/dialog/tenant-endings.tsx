import { useState } from 'react';
import type { Env, Org, Subject } from '../../api/registry-api.ts';
import { useConsole } from '../../shell/console-context.ts';
import { useLoaded } from '../../shell/loading/use-loaded.ts';
import { Card } from '../card.tsx';
import { ConfirmDialog } from './confirm-dialog.tsx';
import { DeletionPreview } from './deletion-preview.tsx';

type Ending = 'suspend' | 'resume' | 'archive' | 'delete';
interface TenantEndingsProps {
  subject: Subject;
  record: Org | Env;
  /** After a change of status: what to say, and the record is read again. */
  changed(text: string): Promise<void>;
  /** After a delete there is nothing to stay on. */
  gone(text: string): Promise<void>;
}

/** Suspend and resume, archive, delete: each says first what it does, and the last what it takes along. */
export function TenantEndings({ subject, record, changed, gone }: TenantEndingsProps) {
  const { bootstrap } = useConsole();
  const [ending, setEnding] = useState<Ending>();
  const what = subject.kind === 'org' ? 'organization' : 'environment';
  const close = () => setEnding(undefined);
  return (
    <>
      {bootstrap?.platform_admin && record.status !== 'archived' && (
        <Card
          title={record.status === 'suspended' ? `Resume this ${what}` : `Suspend this ${what}`}
          note="Its data can be read and nothing can be changed. Sign-in and its hosts answer that it is suspended."
        >
          <div className="row">
            <button type="button" className="btn" onClick={() => setEnding(record.status === 'suspended' ? 'resume' : 'suspend')}>
              {record.status === 'suspended' ? `Resume ${what}` : `Suspend ${what}`}
            </button>
          </div>
        </Card>
      )}
      {record.status !== 'archived' && (
        <Card title={`Archive this ${what}`} note="Its hostnames stop resolving at once. The record stays; its slug becomes free.">
          <div className="row">
            <button type="button" className="btn danger" onClick={() => setEnding('archive')}>
              Archive {what}
            </button>
          </div>
        </Card>
      )}
      <Card title={`Delete this ${what}`} note="Everything in it goes for good. Its slug and hostnames go to nobody else.">
        <div className="row">
          <button type="button" className="btn danger" onClick={() => setEnding('delete')}>
            Delete {what} …
          </button>
        </div>
      </Card>
      {(ending === 'suspend' || ending === 'resume') && (
        <StatusDialog subject={subject} record={record} ending={ending} changed={changed} close={close} />
      )}
      {(ending === 'archive' || ending === 'delete') && (
        <EndDialog subject={subject} record={record} ending={ending} done={ending === 'delete' ? gone : changed} close={close} />
      )}
    </>
  );
}

interface DialogProps {
  subject: Subject;
  record: Org | Env;
  close(): void;
}

function StatusDialog({
  subject,
  record,
  ending,
  changed,
  close,
}: DialogProps & { ending: 'suspend' | 'resume'; changed(text: string): Promise<void> }) {
  const { registry, client } = useConsole();
  const suspends = ending === 'suspend';
  return (
    <ConfirmDialog
      title={`${suspends ? 'Suspend' : 'Resume'} ${record.display_name}?`}
      text={suspends ? 'People are turned away until it is resumed. Nothing is lost.' : 'People can work with it again at once.'}
      label={suspends ? 'Suspend' : 'Resume'}
      tone={suspends ? 'bad' : 'ok'}
      close={close}
      run={async () => {
        client.beginAction();
        await registry.setStatus(subject, suspends ? 'suspended' : 'active');
        await changed(`${record.display_name} ${suspends ? 'suspended' : 'resumed'}`);
      }}
    />
  );
}

function EndDialog({
  subject,
  record,
  ending,
  done,
  close,
}: DialogProps & { ending: 'archive' | 'delete'; done(text: string): Promise<void> }) {
  const { registry, client } = useConsole();
  const preview = useLoaded(`deletion ${subject.id}`, signal => registry.deletionPreview(subject, signal));
  const what = subject.kind === 'org' ? 'organization' : 'environment';
  const deletes = ending === 'delete';
  const ends = deletes
    ? 'There is no way back.'
    : `Nothing leaves the archive. ${subject.kind === 'org' ? 'All its environments go with it.' : 'Its users can no longer sign in.'}`;
  return (
    <ConfirmDialog
      title={`${deletes ? 'Delete' : 'Archive'} ${record.display_name}?`}
      text={ends}
      label={`${deletes ? 'Delete' : 'Archive'} ${what}`}
      tone="bad"
      typed={record.slug}
      ready={!deletes || preview.data?.blocked_by.length === 0}
      close={close}
      run={async () => {
        client.beginAction();
        await (deletes ? registry.delete(subject) : registry.archive(subject));
        await done(`${record.display_name} ${deletes ? 'deleted' : 'archived'}`);
      }}
    >
      {deletes && <DeletionPreview of={preview} />}
    </ConfirmDialog>
  );
}
