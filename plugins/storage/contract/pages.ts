import type { PageDecl } from '@platform/sdk/contract';

/** Pages that the console draws from their declaration. */
export const pages = {
  usage: {
    kind: 'board',
    icon: 'server',
    title: 'Storage',
    description: 'What services keep as objects, and where the bytes are',
    scope: 'platform',
    nav: 1,
    refresh: 15,
    sections: [
      {
        kind: 'stats',
        source: 'usage',
        items: [
          { field: 'objects', label: 'Objects', as: 'number', history: 'value' },
          { field: 'bytes', label: 'Stored', as: 'bytes', history: 'value' },
          { field: 'waiting_bytes', label: 'About to be freed', as: 'bytes' },
          { field: 'uploads', label: 'On their way', as: 'number' },
          { field: 'backend', label: 'Kept in', as: 'status' },
          { field: 'swept_at', label: 'Last sweep', as: 'ago' },
          { field: 'sweep_removed', label: 'Orphans it removed', as: 'number' },
        ],
      },
      {
        title: 'By service',
        kind: 'chart',
        chart: 'bar',
        source: 'usageByService',
        x: 'owner',
        series: [{ field: 'bytes', label: 'Bytes' }],
      },
      {
        title: 'Services',
        kind: 'table',
        source: 'usageByService',
        key: 'owner',
        empty: 'No service has stored anything yet.',
        columns: [
          { field: 'owner', label: 'Service', as: 'code' },
          { field: 'objects', label: 'Objects', as: 'number' },
          { field: 'bytes', label: 'Stored', as: 'bytes' },
          { field: 'newest', label: 'Newest', as: 'ago' },
        ],
      },
    ],
  },
  objects: {
    kind: 'table',
    icon: 'box',
    title: 'Objects',
    scope: 'platform',
    nav: 2,
    source: 'listObjects',
    key: 'key',
    filters: ['prefix', 'env_id'],
    empty: 'No service has stored anything yet.',
    columns: [
      { field: 'key', label: 'Key', as: 'code' },
      { field: 'size', label: 'Size', as: 'bytes' },
      { field: 'content_type', label: 'Type' },
      { field: 'updated_at', label: 'Written', as: 'ago' },
    ],
    rowDetail: [
      { field: 'sha256', label: 'SHA-256', as: 'code' },
      { field: 'owner', label: 'Service', as: 'code' },
      { field: 'env_id', label: 'Environment', as: 'code' },
      { field: 'created_at', label: 'First written', as: 'datetime' },
    ],
  },
  policy: { kind: 'policy', icon: 'shield', title: 'Policy', nav: 3 },
} as const satisfies Readonly<Record<string, PageDecl>>;
