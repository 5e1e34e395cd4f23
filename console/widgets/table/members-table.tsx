import { useState } from 'react';
import type { Level, Member } from '../../api/members-api.ts';
import { useConsole } from '../../shell/console-context.ts';
import { ConfirmDialog } from '../dialog/confirm-dialog.tsx';
import { Dialog } from '../dialog/dialog.tsx';
import { Form } from '../form/form.tsx';
import { levelField } from '../form/level-field.ts';
import { Value } from '../value/value.tsx';

interface MembersTableProps {
  org: string;
  orgName: string;
  items: readonly Member[];
  /** The level the operator holds here; what it does not allow is not offered, and the service decides anyway. */
  access: Level;
  changed(): void;
}
type Asked = { readonly what: 'change' | 'remove'; readonly member: Member };

/** Everybody who is in, with what may be done about it. */
export function MembersTable({ org, orgName, items, access, changed }: MembersTableProps) {
  const { session, members, client, notify } = useConsole();
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  const may = (member: Member) => access === 'owner' || (access === 'admin' && member.access !== 'owner');
  const offered = items.some(may);

  return (
    <>
      <div className="table-wrap">
        <table className="table">
          <caption className="hidden">Members</caption>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Email</th>
              <th scope="col">Level</th>
              <th scope="col">Joined</th>
              {offered && (
                <th scope="col" className="act">
                  <span className="hidden">Actions</span>
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {items.map(member => (
              <tr key={member.user_id}>
                <td data-label="Name">
                  <span>
                    {member.display_name || <span className="faint">–</span>}
                    {member.user_id === session.user.user_id && <span className="faint"> (you)</span>}
                  </span>
                </td>
                <td data-label="Email">{member.email}</td>
                <td data-label="Level">
                  <span className="badge" data-tone={member.access === 'owner' ? 'info' : 'muted'}>
                    {member.access}
                  </span>
                </td>
                <td data-label="Joined">
                  <Value value={member.joined_at} format="datetime" />
                </td>
                {offered && (
                  <td className="act">
                    {may(member) && (
                      <div className="row tight">
                        <button
                          type="button"
                          className="btn small"
                          aria-label={`Change level of ${member.email}`}
                          onClick={() => setAsked({ what: 'change', member })}
                        >
                          Change level
                        </button>
                        <button
                          type="button"
                          className="btn small"
                          aria-label={`Remove ${member.email}`}
                          onClick={() => setAsked({ what: 'remove', member })}
                        >
                          Remove
                        </button>
                      </div>
                    )}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {asked?.what === 'remove' && (
        <ConfirmDialog
          title={`Remove ${asked.member.email}?`}
          text={`They lose ${orgName} and all its environments at once. A new invitation brings them back as an administrator.`}
          label="Remove member"
          tone="bad"
          close={close}
          run={async () => {
            client.beginAction();
            await members.remove(org, asked.member.user_id);
            notify(`${asked.member.email} removed`);
            changed();
          }}
        />
      )}
      {asked?.what === 'change' && (
        <Dialog title={`Level of ${asked.member.email}`} close={close}>
          <Form
            fields={[levelField(access)]}
            initial={asked.member}
            submitLabel="Save level"
            submit={async values => {
              client.beginAction();
              await members.change(org, asked.member.user_id, values['access'] as Level);
              notify(`${asked.member.email} is ${values['access']} now`);
              changed();
              close();
            }}
          />
        </Dialog>
      )}
    </>
  );
}
