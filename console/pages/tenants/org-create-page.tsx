import { useCallback } from 'react';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { Card } from '../../widgets/card.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { SlugForm } from '../../widgets/form/slug-form.tsx';

export function OrgCreatePage() {
  const { registry, client, refresh, notify } = useConsole();
  const check = useCallback((slug: string, signal: AbortSignal) => registry.slugAvailable(slug, undefined, signal), [registry]);
  const domain = location.hostname.split('.').slice(3).join('.') || location.hostname;
  return (
    <PageFrame
      title="Create organization"
      above={<a href="#/">Organizations</a>}
      description="You become its owner. Environments come next."
    >
      <Card>
        <SlugForm
          what="organization"
          label="Organization name"
          example={slug => `${slug}.${domain}`}
          check={check}
          create={async body => {
            client.beginAction();
            const org = await registry.createOrg(body);
            await refresh();
            notify(`${org.display_name} created`);
            location.hash = hrefOf('home', { org: org.org_id });
          }}
        />
      </Card>
    </PageFrame>
  );
}
