import { lazy, Suspense } from 'react';
import { BootstrapPage } from '../pages/bootstrap-page.tsx';
import { EnvHomePage } from '../pages/tenants/env-home-page.tsx';
import { NotFoundPage } from '../pages/not-found-page.tsx';
import { OrgHomePage } from '../pages/tenants/org-home-page.tsx';
import { OrgsPage } from '../pages/tenants/orgs-page.tsx';
import { Loading } from '../widgets/page/page-state.tsx';
import { useConsole } from './console-context.ts';
import { EnvGate } from './navigation/env-gate.tsx';
import { featureEnabled } from './navigation/gates.ts';
import type { Route } from './navigation/route.ts';
import { FeatureOff } from '../pages/feature-off.tsx';

const later = () => import('../pages/later-pages.ts');
const AuditPage = lazy(async () => ({ default: (await later()).AuditPage }));
const BrandingPage = lazy(async () => ({ default: (await later()).BrandingPage }));
const EnvCreatePage = lazy(async () => ({ default: (await later()).EnvCreatePage }));
const InvitationPage = lazy(async () => ({ default: (await later()).InvitationPage }));
const MembersPage = lazy(async () => ({ default: (await later()).MembersPage }));
const OrgCreatePage = lazy(async () => ({ default: (await later()).OrgCreatePage }));
const ServicePage = lazy(async () => ({ default: (await later()).ServicePage }));
const SettingsPage = lazy(async () => ({ default: (await later()).SettingsPage }));

/** Route to page, behind the gates of the environment (G2) and of the feature map (G3), in this order. */
export function Screen({ route }: { route: Route }) {
  return (
    <Suspense fallback={<Loading />}>
      <Routed route={route} />
    </Suspense>
  );
}

function Routed({ route }: { route: Route }) {
  const { services, features, place } = useConsole();
  switch (route.name) {
    case 'orgs':
      return <OrgsPage />;
    case 'bootstrap':
      return route.org && route.invitation ? <InvitationPage org={route.org} token={route.invitation} /> : <BootstrapPage />;
    case 'members':
      return <MembersPage key={route.org} org={route.org} />;
    case 'org-create':
      return <OrgCreatePage />;
    case 'env-create':
      return <EnvCreatePage org={route.org} />;
    case 'home':
      if (route.env) return <EnvGate env={route.env}>{env => <EnvHomePage id={route.env as string} env={env} />}</EnvGate>;
      return <OrgHomePage org={route.org as string} />;
    case 'settings':
      if (route.env) return <EnvGate env={route.env}>{() => <SettingsPage subject={{ kind: 'env', id: route.env as string }} />}</EnvGate>;
      return <SettingsPage subject={{ kind: 'org', id: route.org as string }} />;
    case 'branding':
      if (route.env) return <EnvGate env={route.env}>{() => <BrandingPage subject={{ kind: 'env', id: route.env as string }} />}</EnvGate>;
      return <BrandingPage subject={{ kind: 'org', id: route.org as string }} />;
    case 'audit':
      return <EnvGate env={route.env}>{() => <AuditPage env={route.env} correlation={route.correlation} />}</EnvGate>;
    case 'page': {
      if (!services) return <Loading />;
      const service = services.find(each => each.service === route.service);
      if (!service) return <NotFoundPage />;
      const page = featureEnabled(features, service.service) ? (
        <ServicePage key={`${route.service}/${route.page}`} service={service} page={route.page} props={route.props} />
      ) : (
        <FeatureOff label={service.label} />
      );
      return place.env ? <EnvGate env={place.env}>{() => page}</EnvGate> : page;
    }
    default:
      return <NotFoundPage />;
  }
}
