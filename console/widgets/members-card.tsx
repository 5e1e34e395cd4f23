import { useConsole } from '../shell/console-context.ts';
import { useLoaded } from '../shell/use-loaded.ts';
import { Card } from './card.tsx';
import { Empty, LoadedView } from './page-state.tsx';
import { Value } from './value.tsx';

export function MembersCard({ org }: { org: string }) {
  const { registry } = useConsole();
  const loaded = useLoaded(`members ${org}`, signal => registry.members(org, signal));
  return (
    <Card title="Members" note="As the identity service lists them now." flush>
      <LoadedView of={loaded} optional>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title="No members" />
          ) : (
            <div className="table-wrap">
              <table className="table">
                <caption className="hidden">Members</caption>
                <thead>
                  <tr>
                    <th scope="col">Name</th>
                    <th scope="col">Email</th>
                    <th scope="col">Access</th>
                    <th scope="col">Joined</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map(member => (
                    <tr key={member.user_id}>
                      <td data-label="Name">{member.display_name || <span className="faint">–</span>}</td>
                      <td data-label="Email">{member.email}</td>
                      <td data-label="Access">
                        <span className="badge" data-tone={member.access === 'owner' ? 'info' : 'muted'}>
                          {member.access}
                        </span>
                      </td>
                      <td data-label="Joined">
                        <Value value={member.joined_at} format="datetime" />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </LoadedView>
    </Card>
  );
}
