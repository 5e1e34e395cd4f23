import { readdirSync, readFileSync } from 'node:fs';
import type { AnyRoute } from '@platform/sdk';
import { expect, test } from 'vitest';
import { manifestOf } from '@platform/testing';
import { eventBus } from '../contract/index.ts';

/*
 * What the bus is not (doc2, Event bus service 7), held on its whole interface: a new route, table, job or member that crosses a border
 * must change this file first.
 */

const routes = eventBus.routes as unknown as Record<string, AnyRoute>;
const manifest = manifestOf(eventBus, '0.1.0');
const members = (name: string): string[] =>
  Object.keys((routes[name]?.options.body as { properties: object } | undefined)?.properties ?? {}).sort();
const migrations = readdirSync(new URL('../migrations/', import.meta.url)).map(file =>
  readFileSync(new URL(`../migrations/${file}`, import.meta.url), 'utf8'),
);
const named = (pattern: RegExp): string[] => migrations.flatMap(text => [...text.matchAll(pattern)].map(([, table]) => table as string));
const gone = new Set([...named(/drop table (\w+)/g), ...named(/alter table (\w+) rename to/g)]);
const tables = named(/create table (\w+)/g)
  .filter(table => !gone.has(table))
  .sort();

test('BUS-083 every path is under /v1', () => {
  expect(Object.values(routes).filter(({ path }) => !path.startsWith('/v1/'))).toEqual([]);
  expect(Object.keys(routes).length).toBeGreaterThan(20);
});

test('BUS-022 it keeps no outbox of a producer: its tables are its own inbox, schedule, journal and notes, and nothing is written into another service’s', () => {
  expect(tables).toEqual(['audit_pages', 'event_contracts', 'event_groups', 'event_keys', 'scheduled_events', 'suspended_environments']);
  // Its own events leave through the kernel's outbox like everybody's; it drains nobody's and calls nobody.
  // It reads which services there are, and may write nowhere.
  expect(manifest.uses).toEqual({ sys: ['sys:read'] });
  expect(manifest.workloads).toEqual({});
  expect(manifest.jobs).toEqual(
    Object.fromEntries(['relay', 'reap', 'trim', 'sweepGroups', 'retention'].map(name => [name, expect.any(Object)])),
  );
});

test('BUS-023 it registers no trigger: nothing it takes names what should be done when an event comes', () => {
  expect(Object.values(routes).filter(({ path }) => /trigger|hook|subscri|callback|rule/i.test(path))).toEqual([]);
  const asked = Object.keys(routes).flatMap(members);
  expect(asked.filter(name => /trigger|url|webhook|callback|action|target/i.test(name))).toEqual([]);
  expect(tables.filter(table => /trigger|subscription|hook/.test(table as string))).toEqual([]);
});

test('BUS-025 SCH-002 what is scheduled is scheduled once: a request has a time and no recurrence, a row leaves when it was delivered', () => {
  expect(members('schedule')).toEqual([...members('produce'), 'deliver_at'].sort());
  expect(members('schedule').filter(name => /cron|every|repeat|recur|interval|until|rrule/i.test(name))).toEqual([]);
});

test('BUS-026 there is no WebSocket: events are pulled or come as server-sent events, and no door is a socket', () => {
  expect(new Set(Object.values(routes).map(({ door }) => door))).toEqual(new Set(['request', 'stream']));
  expect(Object.values(routes).filter(({ path }) => /ws|socket|chat/i.test(path))).toEqual([]);
});
