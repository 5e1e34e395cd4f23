import type { DeletionPreview as Preview } from '../../api/registry-api.ts';
import type { Loaded } from '../../shell/loading/use-loaded.ts';
import { LoadedView } from '../page/page-state.tsx';

const NAMES: Readonly<Record<string, readonly [string, string]>> = {
  environments: ['environment', 'environments'],
  applications: ['application', 'applications'],
  bindings: ['binding', 'bindings'],
  custom_domains: ['custom domain', 'custom domains'],
  services: ['service setting', 'service settings'],
  invitations: ['invitation', 'invitations'],
  branding: ['branding', 'brandings'],
  policy_sets: ['policy set', 'policy sets'],
  relations: ['relation', 'relations'],
  attributes: ['attribute', 'attributes'],
};

/** What goes, what stays, and what stands in the way, before anybody confirms. */
export function DeletionPreview({ of }: { of: Loaded<Preview> }) {
  return (
    <LoadedView of={of}>
      {({ counts, services, environments, hostnames, blocked_by: blocked, kept }) => (
        <div className="stack">
          {blocked.length > 0 && (
            <div role="alert" className="notice" data-tone="bad">
              {blocked.map(({ code, detail }) => (
                <p key={code}>{detail}</p>
              ))}
            </div>
          )}
          <dl className="detail">
            <Row label="Goes for good">{Object.keys(counts).length === 0 ? 'Nothing but the record itself' : listed(counts)}</Row>
            {services.map(({ service, label, counts: held }) => (
              <Row key={service} label={`Of ${label}`}>
                {held ? nouns(held) : 'It did not say in time what it holds; all of it goes'}
              </Row>
            ))}
            {environments.length > 0 && <Row label="Environments">{environments.map(({ slug }) => slug).join(', ')}</Row>}
            {hostnames.length > 0 && <Row label="Hosts that stop">{hostnames.join(', ')}</Row>}
            <Row label="Stays">{kept.join('; ')}</Row>
          </dl>
        </div>
      )}
    </LoadedView>
  );
}

function Row({ label, children }: { label: string; children: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function listed(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count.toLocaleString()} ${NAMES[name]?.[count === 1 ? 0 : 1] ?? name}`)
    .join(', ');
}

/** What a service calls its rows is a plural, whatever their number. */
const nouns = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([noun, count]) => `${noun}: ${count.toLocaleString()}`)
    .join(', ');
