import { PageFrame } from '../widgets/page/page-frame.tsx';
import { Empty } from '../widgets/page/page-state.tsx';

export function FeatureOff({ label }: { label: string }) {
  return (
    <PageFrame title={label}>
      <Empty title="Not enabled in this environment">
        <p>An administrator can enable {label} on the overview of the environment.</p>
      </Empty>
    </PageFrame>
  );
}
