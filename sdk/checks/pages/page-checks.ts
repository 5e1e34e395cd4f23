import { ICONS, type Manifest, PAGE_SCOPES, type PageDecl } from '@platform/sdk';
import type { AddFinding } from '../finding.ts';
import { checkLinks } from './page-link-checks.ts';
import { type PagePart, parametersOf, requireOneOf } from './page-part.ts';
import { checkPart } from './page-part-checks.ts';

const KINDS = ['board', 'record', 'table', 'feed', 'detail', 'form', 'stats', 'chart', 'text', 'policy', 'work', 'tabs'] as const;

const PARAMETER = /^[a-z][a-z0-9_]{0,40}$/;

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
    if (page.group !== undefined && !(page.group.trim() && page.group.length <= 60))
      add('E056', `${where}.group`, `'${page.group}' is no heading.`, 'Write 1 to 60 characters, or leave it out.');
    checkReading(manifest, known, page, where, add);
    checkParameters(manifest, page, where, add);
    for (const part of [{ where, part: page, alone: true }, ...partsOf(manifest, where, page)]) {
      checkPart(manifest, part, add);
      checkLinks(manifest, known, part, add);
    }
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

/** A parameter of a page has a name that an address may hold (E056), and a source that is asked with it (E057). */
function checkParameters(manifest: Manifest, page: PageDecl, where: string, add: AddFinding): void {
  const sources = page.kind === 'board' ? page.sections : [page];
  const asked = sources.flatMap(part =>
    'source' in part && part.source ? Object.keys(manifest.routes[part.source]?.options.query ?? {}) : [],
  );
  for (const name of parametersOf(page)) {
    if (!PARAMETER.test(name) || ['org', 'env'].includes(name))
      add('E056', `${where}.params`, `'${name}' is no name of a parameter.`, 'Use a-z, 0-9 and _, neither org nor env.');
    if (!asked.includes(name))
      add('E057', `${where}.params`, `No source of the page takes '${name}'.`, `Use one of: ${asked.join(', ') || '(none)'}.`);
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
