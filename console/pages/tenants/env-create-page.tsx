import { useCallback } from 'react';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { Card } from '../../widgets/card.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { SlugForm } from '../../widgets/form/slug-form.tsx';

export function EnvCreatePage({ org }: { org: string }) {
  const { registry, client, bootstrap, refresh, notify } = useConsole();
  const owner = bootstrap?.orgs.find(({ org_id }) => org_id === org);
  const check = useCallback((slug: string, signal: AbortSignal) => registry.slugAvailable(slug, org, signal), [registry, org]);
  return (
    <PageFrame
      title="Create environment"
      above={<a href={hrefOf('home', { org })}>{owner?.display_name ?? 'Organization'}</a>}
      description="An environment has its own users, services and data."
    >
      <Card>
        <SlugForm
          what="environment"
          label="Environment name"
          example={slug => `${slug}.${owner?.org_domain ?? 'the organization’s domain'}`}
          check={check}
          create={async body => {
            client.beginAction();
            const env = await registry.createEnv({ ...body, org_id: org });
            await refresh();
            notify(`${env.display_name} created`);
            location.hash = hrefOf('home', { env: env.env_id });
          }}
        />
      </Card>
    </PageFrame>
  );
}
