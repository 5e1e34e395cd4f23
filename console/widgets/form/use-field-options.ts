import { useContext, useEffect, useState } from 'react';
import type { Field } from '../../api/page-def.ts';
import type { Option } from './field-control.tsx';
import { PageHostState } from '../page/page-host.ts';
import { itemsOf } from '../page/source-items.ts';
import { valueAt } from '../page/path.ts';

const VALUE_NAMES = ['value', 'id', 'name', 'slug'];
const LABEL_NAMES = ['label', 'display_name', 'title', 'name', 'email', 'slug'];

/** Choices that come from the service. A list that cannot be read leaves the static ones. */
export function useFieldOptions(fields: readonly Field[]): Readonly<Record<string, readonly Option[]>> {
  const host = useContext(PageHostState);
  const [options, setOptions] = useState<Record<string, readonly Option[]>>({});
  useEffect(() => {
    const aborted = new AbortController();
    for (const { name, options_source } of fields) {
      if (!options_source || !host) continue;
      host.read(options_source, {}, aborted.signal).then(
        data => setOptions(before => ({ ...before, [name]: itemsOf(data, options_source).map(optionOf) })),
        () => undefined,
      );
    }
    return () => aborted.abort();
    // Only the list of fields decides what is read; the host is new on every reload.
    // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  }, [fields]);
  return options;
}

function optionOf(item: unknown): Option {
  if (item === null || typeof item !== 'object') return { value: String(item), label: String(item) };
  const names = Object.keys(item);
  const valueName = VALUE_NAMES.find(name => names.includes(name)) ?? names.find(name => name.endsWith('_id')) ?? names[0] ?? '';
  const labelName = LABEL_NAMES.find(name => names.includes(name)) ?? valueName;
  return { value: String(valueAt(item, valueName)), label: String(valueAt(item, labelName)) };
}
