import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Context, defineContract, definePlugin, event, get, Page, PageQuery, subscribe, Type } from '@platform/sdk';
import { afterAll, expect, test } from 'vitest';
import { ConformanceSubject } from './conformance/conformance-subject.ts';
import { drainsUnderLoad } from './conformance/life-promises.ts';
import { handlesEvents, listsRows } from './conformance/work-promises.ts';

const folder = mkdtempSync(join(tmpdir(), 'platform-conformance-'));
writeFileSync(join(folder, '0001_notes.sql'), 'create table notes (note_id uuid primary key, env_id uuid not null, text text not null);');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const neighbour = defineContract({
  id: 'sys',
  title: 'Registry',
  placement: { tier: 15 },
  actions: {},
  problems: {},
  events: { 'platform:sys:org:created': event('An organization was made', Type.Object({ org_id: Type.String() })) },
  routes: {},
});
const frail = defineContract({
  id: 'frail',
  title: 'Frail',
  uses: { sys: [] },
  placement: { tier: 50 },
  actions: { 'frail:read': { title: 'See notes', grants: 'read' } },
  problems: {},
  events: {},
  consumes: { orgs: subscribe('platform:sys:org:created', { family: 'sys' }) },
  onEnvironmentDeleted: { purge: { notes: 'notes' } },
  routes: {
    listNotes: get('/v1/notes', {
      summary: 'Notes',
      gate: 'frail:read',
      env: 'own',
      query: PageQuery,
      returns: Page(Type.Object({ note_id: Type.String() })),
    }),
  },
  pages: {
    notes: {
      kind: 'table',
      title: 'Notes',
      icon: 'list',
      source: 'listNotes',
      key: 'note_id',
      columns: [{ field: 'note_id', label: 'Note' }],
    },
  },
});
/** It keeps none of three promises: its handler of events always fails, its page lists nothing, and who waits when it drains is failed. */
const plugin = definePlugin(frail, {
  uses: { sys: neighbour },
  migrations: pathToFileURL(`${folder}/`),
  setup(ctx: Context<typeof frail>) {
    let isEnding = false;
    return {
      routes: {
        listNotes: async () => {
          await ctx.db.sql`select note_id from notes`;
          if (isEnding) throw new Error('it has let go of what this request needs');
          return { items: [], next_cursor: null };
        },
      },
      on: { orgs: () => Promise.reject(new Error('it never works')) },
      drain: async () => {
        isEnding = true;
      },
    };
  },
});
const judged = new ConformanceSubject(plugin, {}, {}) as unknown as ConformanceSubject;

test('a handler that fails on the first delivery of its event is no service that conforms', async () => {
  await expect(handlesEvents(judged)).rejects.toThrow(/takes what its event promises/);
});

test('a page of which nothing is listed is no page that was looked at', async () => {
  await expect(listsRows(judged)).rejects.toThrow(/listNotes/);
});

test('a request that only reads is under way during the drain, and must not end worse for it', async () => {
  await expect(drainsUnderLoad(judged)).rejects.toThrow(/500/);
  await judged.use(host => host[Symbol.asyncDispose]());
});
