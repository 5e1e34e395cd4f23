import { useState } from 'react';
import type { Invitation, Level } from '../api/members-api.ts';
import type { Field } from '../api/page-def.ts';
import type { Page } from '../api/registry-api.ts';
import { useConsole } from '../shell/console-context.ts';
import type { Loaded } from '../shell/loading/use-loaded.ts';
import { Card } from './card.tsx';
import { ConfirmDialog } from './dialog/confirm-dialog.tsx';
import { Dialog } from './dialog/dialog.tsx';
import { Form } from './form/form.tsx';
import { Icon } from './icon.tsx';
import { levelField, levelName } from './form/level-field.ts';
import { MoreButton } from './table/more-button.tsx';
import { Empty, LoadedView } from './page/page-state.tsx';
import { Value } from './value/value.tsx';

const EMAIL: Field = {
  name: 'email',
  label: 'Email',
  type: 'text',
  required: true,
  max: 320,
  pattern: '^\\s*[^@\\s]+@[^@\\s]+\\s*$',
  help: 'The link in the mail works for seven days.',
};
type Asked = { readonly what: 'invite' } | { readonly what: 'revoke' | 'resend'; readonly invitation: Invitation };

/** Who was asked in and has not answered. Sending again withdraws the old link and makes a new one. */
export function InvitationsCard({ org, own, of }: { org: string; own: Level; of: Loaded<Page<Invitation>> & { more(): void } }) {
  const { members, client, notify } = useConsole();
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const run = (work: (invitation: Invitation) => Promise<string>) => async () => {
    if (!asked || asked.what === 'invite') return;
    client.beginAction();
    try {
      notify(await work(asked.invitation));
    } finally {
      // Half of a resend may have happened: the list says what is so.
      of.reload();
    }
  };

  return (
    <Card
      title="Pending invitations"
      flush
      actions={
        <button type="button" className="btn primary" onClick={() => setAsked({ what: 'invite' })}>
          <Icon name="plus" />
          Invite
        </button>
      }
    >
      <LoadedView of={of}>
        {({ items, next_cursor }) =>
          items.length === 0 ? (
            <Empty title="Nobody is waiting">
              <p>People you invite are shown here until they accept.</p>
            </Empty>
          ) : (
            <>
              <div className="table-wrap">
                <table className="table">
                  <caption className="hidden">Pending invitations</caption>
                  <thead>
                    <tr>
                      <th scope="col">Email</th>
                      <th scope="col">Joins as</th>
                      <th scope="col">Invited</th>
                      <th scope="col">Ends</th>
                      <th scope="col" className="act">
                        <span className="hidden">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map(invitation => (
                      <InvitationRow key={invitation.invitation_id} invitation={invitation} ask={what => setAsked({ what, invitation })} />
                    ))}
                  </tbody>
                </table>
              </div>
              {next_cursor && <MoreButton label="Show more invitations" busy={of.loading} more={of.more} />}
            </>
          )
        }
      </LoadedView>
      {asked?.what === 'invite' && (
        <Dialog title="Invite somebody" close={close}>
          <Form
            fields={[EMAIL, { ...levelField(own, 'They join as'), default: 'admin' }]}
            submitLabel="Send invitation"
            submit={async ({ email, access }) => {
              client.beginAction();
              const invitation = await members.invite(org, String(email).trim(), access as Level);
              notify(`${invitation.email} is invited`);
              of.reload();
              close();
            }}
          />
        </Dialog>
      )}
      {asked?.what === 'revoke' && (
        <ConfirmDialog
          title={`Withdraw the invitation of ${asked.invitation.email}?`}
          text="The link in the mail stops working at once."
          label="Withdraw invitation"
          tone="bad"
          close={close}
          run={run(async ({ invitation_id, email }) => {
            await members.revoke(org, invitation_id);
            return `The invitation of ${email} is withdrawn`;
          })}
        />
      )}
      {asked?.what === 'resend' && (
        <ConfirmDialog
          title={`Send ${asked.invitation.email} a new link?`}
          text="The old link stops working; the new one works for seven days."
          label="Send again"
          close={close}
          run={run(async ({ invitation_id, email, access }) => {
            await members.revoke(org, invitation_id);
            await members.invite(org, email, access);
            return `${email} is invited again`;
          })}
        />
      )}
    </Card>
  );
}

function InvitationRow({ invitation, ask }: { invitation: Invitation; ask(what: 'revoke' | 'resend'): void }) {
  const { email, access, created_at, expires_at } = invitation;
  const ended = Date.parse(expires_at) <= Date.now();
  return (
    <tr>
      <td data-label="Email">{email}</td>
      <td data-label="Joins as">{levelName(access)}</td>
      <td data-label="Invited">
        <Value value={created_at} format="datetime" />
      </td>
      <td data-label="Ends">
        {ended ? (
          <span className="badge" data-tone="warn">
            expired
          </span>
        ) : (
          <Value value={expires_at} format="datetime" />
        )}
      </td>
      <td className="act">
        <div className="row tight">
          <button type="button" className="btn small" aria-label={`Send ${email} again`} onClick={() => ask('resend')}>
            Send again
          </button>
          <button type="button" className="btn small" aria-label={`Withdraw the invitation of ${email}`} onClick={() => ask('revoke')}>
            Withdraw
          </button>
        </div>
      </td>
    </tr>
  );
}
