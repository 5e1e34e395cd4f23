import { createContext, useContext } from 'react';
import type { Action, Link, PageDef, Source } from '../../api/page-def.ts';
import type { Query } from '../../api/gateway/gateway-client.ts';
import type { TemplateScope } from './template.ts';

/** What a section may ask of the page it stands on. */
export interface PageHost {
  readonly def: PageDef;
  readonly params: Readonly<Record<string, string>>;
  /** Moves when everything on the page is to be read again. */
  readonly turn: number;
  read(source: Source, more?: Query, signal?: AbortSignal): Promise<unknown>;
  /** Answers what the service did. */
  run(action: Action, scope: TemplateScope): Promise<unknown>;
  /** Called after `run`: says it, reloads, or goes where the action leads. */
  settle(action: Action, scope: TemplateScope, text?: string): void;
  may(action: Action): boolean;
  href(link: Link, scope: TemplateScope): string;
}

export const PageHostState = createContext<PageHost | undefined>(undefined);

export function usePageHost(): PageHost {
  const host = useContext(PageHostState);
  if (!host) throw new Error('A section stands outside of a page.');
  return host;
}
