import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Check, Errors } from 'typebox/schema';
import { expect, test } from 'vitest';
import { manifestOf } from '../../base/manifest.ts';
import { readPlugin } from '../../host/plugin/loader.ts';
import { probe } from '../../test/probe-contract.ts';
import { pageDefinition } from './page-definition.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const read = (path: string) => JSON.parse(readFileSync(root + path, 'utf8'));
const schema = read('catalog/schema/page.schema.json');
const faults = (page: unknown) => (Check(schema, page) ? [] : Errors(schema, page)[1]);

test('every page of every service has the form that the schema of the wire says', async () => {
  const { services } = read('catalog/platform.json') as { services: { package: string }[] };
  const folders = [...services.map(service => `plugins/${service.package}`), 'e2e/verticals/lending'];
  const manifests = [
    manifestOf(probe, '1.0.0'),
    ...(await Promise.all(folders.map(async folder => (await readPlugin(root + folder)).manifest))),
  ];
  const pages = manifests.flatMap(manifest => Object.keys(manifest.pages).map(name => ({ manifest, name })));
  expect(pages.length).toBeGreaterThan(50);
  for (const { manifest, name } of pages)
    expect([manifest.id, name, faults(JSON.parse(JSON.stringify(pageDefinition(manifest, name))))]).toEqual([manifest.id, name, []]);
});

test('the schema refuses a part, a member and a value that the wire does not know', () => {
  const page = pageDefinition(manifestOf(probe, '1.0.0'), 'both') as unknown as { sections: { tabs: { sections: object[] }[] }[] };
  const inner = (section: object) => ({ ...page, sections: [{ id: 'a', kind: 'tabs', tabs: [{ label: 'x', sections: [section] }] }] });
  expect(Check(schema, page)).toBe(true);
  expect(Check(schema, inner({ id: 'b', kind: 'notice', tone: 'info', text: 'x' }))).toBe(true);
  expect(Check(schema, inner({ id: 'b', kind: 'notice', tone: 'red', text: 'x' }))).toBe(false);
  expect(Check(schema, inner({ id: 'b', kind: 'poem', text: 'x' }))).toBe(false);
  expect(Check(schema, inner({ id: 'b', kind: 'notice', tone: 'info', text: 'x', colour: 'red' }))).toBe(false);
  expect(Check(schema, { ...page, schema: 'platform.admin-ui/2' })).toBe(false);
});
