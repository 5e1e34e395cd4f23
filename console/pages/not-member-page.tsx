import { useConsole } from '../shell/console-context.ts';
import { PageFrame } from '../widgets/page/page-frame.tsx';
import { Empty } from '../widgets/page/page-state.tsx';

export function NotMemberPage({ settle }: { settle(): Promise<void> }) {
  const { session } = useConsole();
  return (
    <PageFrame title="Welcome">
      <Empty title="You are not a member of any organization yet">
        <p>
          You are signed in as <strong>{session.user.email}</strong>. Ask an owner for an invitation, or open the link in the invitation you
          were sent.
        </p>
        <p className="row center">
          <button type="button" className="btn primary" onClick={settle}>
            Check again
          </button>
          <a className="btn" href="#/org/create">
            Create organization
          </a>
          <a className="btn" href="#/sign-out">
            Sign out
          </a>
        </p>
      </Empty>
    </PageFrame>
  );
}
