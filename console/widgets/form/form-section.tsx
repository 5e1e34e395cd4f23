import type { FormSection as Definition } from '../../api/page-def.ts';
import { ActionButton } from '../action-button.tsx';
import { Form } from './form.tsx';
import { usePageHost } from '../page/page-host.ts';
import { Denied, LoadedView } from '../page/page-state.tsx';
import { useSource } from '../page/use-source.ts';

export function FormSection({ section }: { section: Definition }) {
  const host = usePageHost();
  if (!host.may(section.submit)) return <Denied />;
  return section.source ? <Filled section={section} source={section.source} /> : <Bare section={section} initial={undefined} />;
}

function Filled({ section, source }: { section: Definition; source: NonNullable<Definition['source']> }) {
  const loaded = useSource(source);
  return <LoadedView of={loaded}>{data => <Bare key={JSON.stringify(data)} section={section} initial={data} />}</LoadedView>;
}

function Bare({ section: { fields, submit, secondary = [] }, initial }: { section: Definition; initial: unknown }) {
  const host = usePageHost();
  const scope = { params: host.params, row: initial };
  return (
    <Form
      fields={fields}
      initial={initial}
      submitLabel={submit.label}
      tone={submit.tone}
      more={secondary.map(action => <ActionButton key={action.id} action={action} scope={scope} />)}
      submit={async form => {
        await host.run(submit, { ...scope, form });
        host.settle(submit, { ...scope, form });
      }}
    />
  );
}
