import { ICONS, PAGE_SCOPES, type PageDecl } from '@platform/sdk';
import type { Manifest } from '../../../../base/manifest.ts';
import type { AddFinding } from '../finding.ts';
import { type PagePart, requireOneOf } from './page-part.ts';
import { checkPart } from './page-part-checks.ts';

const KINDS = ['board', 'record', 'table', 'feed', 'detail', 'form', 'stats', 'chart', 'text', 'policy', 'work', 'tabs'] as const;

/**
 * Checks what pages name: routes, members of answers, events, other pages (E050 to E057). A page that passes opens in a browser.
 */
export function checkPages(manifest: Manifest, known: ReadonlyMap<string, Manifest>, add: AddFinding): void {
  checkPlaces(manifest, add);
  for (const [name, page] of Object.entries(manifest.pages)) {
    const where = `pages.${name}`;
    requireOneOf(KINDS, page.kind, `${where}.kind`, add);
    requireOneOf(ICONS, page.icon, `${where}.icon`, add);
    requireOneOf(PAGE_SCOPES, page.scope, `${where}.scope`, add);
    checkReading(manifest, known, page, where, add);
    checkPart(manifest, { where, part: page, alone: true }, add);
    for (const part of partsOf(manifest, where, page)) checkPart(manifest, part, add);
    if (page.kind === 'tabs') for (const { page: inner } of page.tabs) requirePage(manifest, inner, `${where}.tabs`, 'E053', add);
  }
}

/** The pages and routes that the inbox and the first steps lead to (E055). */
function checkPlaces(manifest: Manifest, add: AddFinding): void {
  const { inbox, firstSteps } = manifest;
  if (firstSteps !== undefined) requirePage(manifest, firstSteps.page, 'firstSteps.page', 'E055', add);
  if (!inbox) return;
  for (const member of ['list', 'unread', 'read', 'readAll'] as const)
    if (!(inbox[member] in manifest.routes))
      add('E055', `inbox.${member}`, `No route '${inbox[member]}'.`, `Use one of: ${Object.keys(manifest.routes).join(', ')}.`);
  if (inbox.settings !== undefined) requirePage(manifest, inbox.settings, 'inbox.settings', 'E055', add);
}

function requirePage(manifest: Manifest, page: string, where: string, id: string, add: AddFinding): void {
  if (!(page in manifest.pages)) add(id, where, `No page '${page}'.`, `Use one of: ${Object.keys(manifest.pages).join(', ')}.`);
}

/** When a page is read again: by events that somebody makes (E052), after whole seconds (E056). */
function checkReading(manifest: Manifest, known: ReadonlyMap<string, Manifest>, page: PageDecl, where: string, add: AddFinding): void {
  if (page.refresh !== undefined && !(Number.isInteger(page.refresh) && page.refresh > 0))
    add('E056', `${where}.refresh`, `${String(page.refresh)} is no pause between two readings.`, 'Write whole seconds, from 1 on.');
  const made = new Set([manifest, ...known.values()].flatMap(({ events }) => Object.keys(events)));
  for (const event of page.live ?? []) {
    const owner = event.split(':')[1] ?? '';
    // A neighbour of which there is only the contract, or that this distribution leaves out, says nothing of its events (as for E021).
    if (made.has(event) || (owner in manifest.uses && !known.has(owner))) continue;
    add('E052', `${where}.live`, `No event '${event}'.`, 'Declare it under `events`, or name an event of a service under `uses`.');
  }
}

function partsOf(manifest: Manifest, where: string, page: PageDecl): PagePart[] {
  if (page.kind === 'board') return page.sections.map((part, index) => ({ where: `${where}.sections.${index}`, part, alone: true }));
  if (page.kind !== 'record') return [];
  const record = manifest.routes[page.source];
  return (page.tabs ?? []).map((part, index) => ({
    where: `${where}.tabs.${index}`,
    part,
    alone: false,
    ...(record ? { record: (record.options.returns ?? {}) as object } : {}),
  }));
}
