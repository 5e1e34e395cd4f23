import { PageFrame } from '../widgets/page/page-frame.tsx';
import { Empty } from '../widgets/page/page-state.tsx';

export function NotFoundPage() {
  return (
    <PageFrame title="Page not found">
      <Empty title="There is no such page">
        <p>
          The address <code>{location.hash || '#/'}</code> leads nowhere in this environment.
        </p>
        <p>
          <a className="btn" href="#/">
            Go to your organizations
          </a>
        </p>
      </Empty>
    </PageFrame>
  );
}
