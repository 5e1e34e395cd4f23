import type { WireAction, WireColumn, WireField, WireSection } from './page-schema.ts';

const remove = (kind: string, member: string): WireAction => ({
  id: 'delete',
  label: 'Delete',
  resource: kind,
  body: { op: 'delete', [member]: `{row.${member}}` },
  confirm: 'It counts no more from the next request on.',
  tone: 'bad',
  then: 'reload',
});
const text = (name: string, label: string, help?: string): WireField => ({
  name,
  label,
  type: 'text',
  required: true,
  ...(help ? { help } : {}),
});
const setFields: WireField[] = [
  text('name', 'Name'),
  {
    name: 'mode',
    label: 'Mode',
    type: 'select',
    default: 'shadow',
    options: ['shadow', 'enforced'].map(value => ({ value, label: value })),
    help: 'A shadow set is evaluated and logged; only an enforced one decides.',
  },
  { name: 'policies', label: 'Policies', type: 'textarea', required: true, help: 'Cedar text, at most 64 KiB' },
];

type WireTab = Extract<WireSection, { kind: 'tabs' }>['tabs'][number];
interface Kind {
  readonly label: string;
  readonly resource: string;
  readonly key: string;
  readonly columns: WireColumn[];
  readonly fields: WireField[];
  readonly empty: string;
  readonly detail?: WireColumn[];
  /** Rows that may be deleted; all of them without. */
  readonly when?: NonNullable<WireAction['when']>;
}
const KINDS: readonly Kind[] = [
  {
    label: 'Policy sets',
    resource: 'policy-sets',
    key: 'policy_set_id',
    columns: [
      { label: 'Name', value: 'name' },
      { label: 'Mode', value: 'mode', format: 'badge', tone_map: { enforced: 'ok', shadow: 'info' } },
      { label: 'Origin', value: 'origin' },
      { label: 'Version', value: 'version', format: 'number' },
      { label: 'Changed', value: 'updated_at', format: 'datetime' },
    ],
    fields: setFields,
    when: { path: 'origin', op: 'eq', value: 'tenant' },
    empty: 'This environment has no policy of its own: scopes alone decide.',
    detail: [
      { label: 'Changed by', value: 'updated_by', format: 'code' },
      { label: 'Policies', value: 'policies', format: 'json' },
    ],
  },
  {
    label: 'Relations',
    resource: 'relations',
    key: 'relation_id',
    columns: [
      { label: 'Subject', value: 'subject', format: 'code' },
      { label: 'Relation', value: 'relation' },
      { label: 'Object', value: 'object', format: 'code' },
    ],
    fields: [
      text('subject', 'Subject', 'user:…, workload:… or group:…'),
      text('relation', 'Relation'),
      text('object', 'Object', 'kind:id'),
    ],
    empty: 'No relation is recorded here.',
  },
  {
    label: 'Attributes',
    resource: 'attributes',
    key: 'attribute_id',
    columns: [
      { label: 'Principal', value: 'principal', format: 'code' },
      { label: 'Key', value: 'key' },
      { label: 'Value', value: 'value' },
    ],
    fields: [text('principal', 'Principal', 'user:… or workload:…'), text('key', 'Key'), text('value', 'Value')],
    empty: 'No attribute is recorded here.',
  },
];

/** Policy administration as sections of a page: what every service serves under `/v1/admin/{kind}` (G-K-10). */
export function policySections(service: string, only?: 'relations' | 'attributes'): WireSection[] {
  const requires = `${service}:policy:admin`;
  const tabs = KINDS.filter(({ resource }) => only === undefined || resource === only).map(
    ({ label, resource, key, columns, fields, empty, detail, when }): WireTab => ({
      label,
      sections: [
        {
          id: `${resource}-add`,
          kind: 'actions',
          actions: [{ id: 'add', label: `Add to ${label.toLowerCase()}`, resource, form: fields, requires, then: 'reload' }],
        },
        {
          id: resource,
          kind: 'table',
          source: { resource, paged: true },
          row_key: key,
          columns,
          row_actions: [{ ...remove(resource, key), requires, ...(when ? { when } : {}) }],
          ...(detail ? { row_detail: detail } : {}),
          empty,
        },
      ],
    }),
  );
  if (only !== undefined) return tabs.flatMap(({ sections }) => sections);
  const decisions: WireSection = {
    id: 'decisions',
    kind: 'table',
    source: { resource: 'decisions' },
    row_key: 'decision_id',
    columns: [
      { label: 'When', value: 'at', format: 'datetime' },
      { label: 'Who', value: 'principal', format: 'code' },
      { label: 'What', value: 'action', format: 'code' },
      { label: 'Decision', value: 'effect', format: 'badge', tone_map: { permit: 'ok', deny: 'bad' } },
    ],
    empty: 'This process has decided nothing here yet.',
  };
  return [{ id: 'policy', kind: 'tabs', tabs: [...tabs, { label: 'Decisions', sections: [decisions] }] }];
}
