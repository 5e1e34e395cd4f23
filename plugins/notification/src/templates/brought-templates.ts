import type { TemplateDecl } from '@platform/sdk/contract';
import type { Ctx } from '../context.ts';

export interface BroughtTemplate extends TemplateDecl {
  readonly key: string;
  readonly service: string;
}

/** Templates that services bring in their contracts, by key: `{service}.{name}`. */
export class BroughtTemplates {
  readonly #ctx: Pick<Ctx, 'catalog'>;
  #known: { readonly from: readonly object[]; readonly byKey: ReadonlyMap<string, BroughtTemplate> } | undefined;

  constructor(ctx: Pick<Ctx, 'catalog'>) {
    this.#ctx = ctx;
  }

  all(): ReadonlyMap<string, BroughtTemplate> {
    const from = this.#ctx.catalog.manifests();
    if (this.#known?.from !== from) {
      const manifests = from as readonly { readonly id: string; readonly templates?: Readonly<Record<string, TemplateDecl>> }[];
      const brought = manifests.flatMap(({ id, templates = {} }) =>
        Object.entries(templates).map(([name, decl]) => ({ ...decl, key: `${id}.${name}`, service: id })),
      );
      this.#known = { from, byKey: new Map(brought.map(each => [each.key, each])) };
    }
    return this.#known.byKey;
  }
}
