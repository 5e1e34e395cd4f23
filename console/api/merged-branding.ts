import type { Branding, BrandingField, MergedBranding, Subject } from './registry-api.ts';

/** The merge of the registry (G-SYS-09) over what is not saved yet: a non-empty own value wins, an empty one inherits. */
export function mergeBranding(base: Branding, own: Branding, kind: Subject['kind']): MergedBranding {
  const fields: Branding = {};
  const sources: Partial<Record<BrandingField, 'org' | 'env'>> = {};
  const layers = [
    ['org', base],
    [kind, own],
  ] as const;
  for (const [source, layer] of layers) {
    for (const [name, value] of Object.entries(layer) as [BrandingField, string | null][]) {
      if (!value) continue;
      fields[name] = value;
      sources[name] = source;
    }
  }
  return { ...fields, sources };
}
