import { useState } from 'react';
import type { Field } from '../api/page-def.ts';
import type { Branding, BrandingField, MergedBranding, Subject } from '../api/registry-api.ts';
import { useConsole } from '../shell/console-context.ts';
import { hrefOf } from '../shell/route.ts';
import { useLoaded } from '../shell/use-loaded.ts';
import { BrandingPreview } from '../widgets/branding-preview.tsx';
import { Card } from '../widgets/card.tsx';
import { Form } from '../widgets/form.tsx';
import { PageFrame } from '../widgets/page-frame.tsx';
import { LoadedView } from '../widgets/page-state.tsx';

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
  const { registry, client, notify } = useConsole();
  const [draft, setDraft] = useState<Branding>();
  const own = useLoaded(`branding ${subject.id}`, signal => registry.branding(subject, signal));
  const merged = useLoaded(`merged ${subject.id}`, signal => (subject.kind === 'env' ? registry.mergedBranding(subject.id, signal) : Promise.resolve<MergedBranding | null>(null)));
  const shown: Branding = { ...merged.data, ...set(draft ?? own.data) };
  return (
    <PageFrame
      title="Branding"
      above={<a href={hrefOf('home', { [subject.kind]: subject.id })}>{subject.kind === 'org' ? 'Organization' : 'Environment'}</a>}
      description={subject.kind === 'env' ? 'What is set here wins over the organization.' : 'The base for every environment of the organization.'}
    >
      <LoadedView of={own} optional>
        {branding => (
          <div className="split">
            <Card title={subject.kind === 'env' ? 'Override' : 'Base'}>
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
                  own.reload();
                  merged.reload();
                }}
              />
            </Card>
            <Card title="Preview" note={subject.kind === 'env' ? 'Merged with the organization.' : 'As a sign-in page.'}>
              <BrandingPreview branding={shown} />
              {merged.data?.sources && <Sources merged={merged.data} />}
            </Card>
          </div>
        )}
      </LoadedView>
    </PageFrame>
  );
}

function Sources({ merged }: { merged: MergedBranding }) {
  const rows = FIELDS.filter(({ name }) => merged.sources?.[name as BrandingField]);
  return (
    <dl className="detail small">
      {rows.map(({ name, label }) => (
        <div key={name}>
          <dt>{label}</dt>
          <dd>
            <span className="badge" data-tone="muted">
              {merged.sources?.[name as BrandingField]}
            </span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function set(branding: Branding | undefined): Branding {
  return Object.fromEntries(Object.entries(branding ?? {}).filter(([, value]) => value)) as Branding;
}
