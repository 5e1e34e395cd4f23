import { useState } from 'react';
import type { Field } from '../../api/page-def.ts';
import { mergeBranding } from '../../api/merged-branding.ts';
import type { Branding, BrandingField, MergedBranding, RegistryApi, Subject } from '../../api/registry-api.ts';
import { useConsole } from '../../shell/console-context.ts';
import { hrefOf } from '../../shell/navigation/route.ts';
import { useLoaded } from '../../shell/loading/use-loaded.ts';
import { BrandingPreview } from '../../widgets/branding-preview.tsx';
import { Card } from '../../widgets/card.tsx';
import { Form } from '../../widgets/form/form.tsx';
import { PageFrame } from '../../widgets/page/page-frame.tsx';
import { LoadedView } from '../../widgets/page/page-state.tsx';

const FIELDS: readonly Field[] = [
  { name: 'primary_color', label: 'Primary colour', type: 'color' },
  { name: 'secondary_color', label: 'Secondary colour', type: 'color' },
  { name: 'background_color', label: 'Background colour', type: 'color' },
  { name: 'text_color', label: 'Text colour', type: 'color' },
  { name: 'font_family', label: 'Font family', type: 'text', help: 'Fonts the visitor has installed, such as Georgia, serif.' },
  { name: 'logo_url', label: 'Logo address', type: 'text', pattern: 'https://.+', help: 'An https address.' },
  {
    name: 'theme_mode',
    label: 'Theme',
    type: 'select',
    options: [
      { value: 'system', label: 'As the visitor prefers' },
      { value: 'light', label: 'Light' },
      { value: 'dark', label: 'Dark' },
    ],
  },
  { name: 'custom_css', label: 'Custom CSS', type: 'textarea', help: 'Kept with the branding; the hosted sign-in does not apply it.' },
];

export function BrandingPage({ subject }: { subject: Subject }) {
  const { registry, client, notify, bootstrap } = useConsole();
  const [draft, setDraft] = useState<Branding>();
  const isEnv = subject.kind === 'env';
  const org = isEnv ? bootstrap?.orgs.find(({ envs }) => envs.some(({ env_id }) => env_id === subject.id))?.org_id : undefined;
  const own = useLoaded(`branding ${subject.id}`, signal => registry.branding(subject, signal));
  const base = useLoaded(`base of ${subject.id} ${org ?? ''}`, signal => baseOf(registry, subject, org, signal));
  const merged = mergeBranding(base.data ?? {}, draft ?? own.data ?? {}, subject.kind);
  return (
    <PageFrame
      title="Branding"
      above={<a href={hrefOf('home', { [subject.kind]: subject.id })}>{isEnv ? 'Environment' : 'Organization'}</a>}
      description={isEnv ? 'What is set here wins over the organization.' : 'The base for every environment of the organization.'}
    >
      <LoadedView of={own} optional>
        {branding => (
          <div className="split">
            <Card title={isEnv ? 'Override' : 'Base'}>
              <Form
                key={JSON.stringify(branding)}
                fields={FIELDS}
                initial={branding}
                submitLabel="Save branding"
                change={values => setDraft(values as Branding)}
                submit={async values => {
                  client.beginAction();
                  await registry.saveBranding(subject, values as Branding);
                  notify('Branding saved');
                  setDraft(undefined);
                  own.reload();
                }}
              />
            </Card>
            <Card title="Preview" note={isEnv ? 'As you type, merged with the organization.' : 'As you type, as a sign-in page.'}>
              <BrandingPreview branding={merged} />
              <Sources merged={merged} />
            </Card>
          </div>
        )}
      </LoadedView>
    </PageFrame>
  );
}

/** What an environment inherits. Who may not read the organization sees at least what is not overridden yet. */
async function baseOf(registry: RegistryApi, subject: Subject, org: string | undefined, signal: AbortSignal): Promise<Branding> {
  if (subject.kind === 'org') return {};
  if (org) {
    const base = await registry.branding({ kind: 'org', id: org }, signal).catch(() => undefined);
    if (base) return base;
  }
  const { sources = {}, ...merged } = await registry.mergedBranding(subject.id, signal);
  return Object.fromEntries(Object.entries(merged).filter(([name]) => sources[name as BrandingField] === 'org'));
}

function Sources({ merged }: { merged: MergedBranding }) {
  const rows = FIELDS.filter(({ name }) => merged[name as BrandingField]);
  if (rows.length === 0) return <p className="faint small">Nothing is set: people see the platform's own look.</p>;
  return (
    <dl className="detail small">
      {rows.map(({ name, label }) => (
        <div key={name}>
          <dt>{label}</dt>
          <dd>
            <span className="badge" data-tone={merged.sources?.[name as BrandingField] === 'env' ? 'info' : 'muted'}>
              {merged.sources?.[name as BrandingField] === 'env' ? 'this environment' : 'organization'}
            </span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
