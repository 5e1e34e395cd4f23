import { useEffect } from 'react';
import { coalesced } from '../../shell/loading/coalesced.ts';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { useMore } from '../../shell/loading/use-more.ts';
import { Card } from '../../widgets/card.tsx';
import { InvitationsCard } from '../../widgets/invitations-card.tsx';
import { MembersTable } from '../../widgets/table/members-table.tsx';
import { MoreButton } from '../../widgets/table/more-button.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { Absent, Empty, LoadedView } from '../../widgets/page/page-state.tsx';

/** Who is in an organization, and who is asked in. */
export function MembersPage({ org }: { org: string }) {
  const { members, bootstrap, live, config } = useConsole();
  const known = bootstrap?.orgs.find(({ org_id }) => org_id === org);
  const people = useMore(`members ${org}`, (pages, signal) => members.members(org, pages, signal));
  const pending = useMore(`invitations ${org}`, (pages, signal) => members.pending(org, pages, signal));
  const { reload: reloadPeople } = people;
  const { reload: reloadPending } = pending;
  useEffect(
    () =>
      live.subscribe(
        config.live_types,
        coalesced(async () => {
          reloadPeople();
          reloadPending();
        }, 300),
      ),
    [live, config, reloadPeople, reloadPending],
  );
  if (people.problem?.absent) return <Absent what="This organization" />;

  const name = known?.display_name ?? 'the organization';
  // What is not known is left to the service.
  const access = known?.access ?? 'owner';
  return (
    <PageFrame title="Members" above={<a href={hrefOf('home', { org })}>{known?.display_name ?? 'Organization'}</a>}>
      <Card title="Members" note="As the identity service lists them now." flush>
        <LoadedView of={people}>
          {({ items, next_cursor }) =>
            items.length === 0 ? (
              <Empty title="No members">
                <p>Nobody holds a level in this organization.</p>
              </Empty>
            ) : (
              <>
                <MembersTable org={org} orgName={name} items={items} access={access} changed={reloadPeople} />
                {next_cursor && <MoreButton label="Show more members" busy={people.loading} more={people.more} />}
              </>
            )
          }
        </LoadedView>
      </Card>
      {access !== 'viewer' && <InvitationsCard org={org} own={access} of={pending} />}
    </PageFrame>
  );
}
