import type { Manifest } from '@platform/sdk';
import { checkEvents } from './event-checks.ts';
import { checkFields } from './pages/field-checks.ts';
import type { AddFinding, Finding } from './finding.ts';
import { checkMetrics } from './metric-checks.ts';
import { checkPages } from './pages/page-checks.ts';
import { checkRoutes } from './route-checks.ts';
import { checkSettings } from './setting-checks.ts';
import { checkWork } from './work-checks.ts';

const SERVICE = /^[a-z][a-z0-9]{0,30}$/;

/**
 * Runs every check on a manifest; the kernel refuses to load on any `E`, and only warns on `W`. `outside`: it comes from somebody else, and
 * not with the platform.
 */
export function checkManifest(
  manifest: Manifest,
  known: ReadonlyMap<string, Manifest> = new Map(),
  { outside = false }: { outside?: boolean } = {},
): Finding[] {
  const findings: Finding[] = [];
  const add: AddFinding = (id, where, what, fix) => void findings.push({ id, where: `${manifest.id}.${where}`, what, fix });
  checkNames(manifest, known, add);
  if (outside && manifest.vertical === 'platform')
    add('E006', 'vertical', "A plugin from outside cannot belong to 'platform'.", 'Set `vertical` to your own name.');
  checkEvents(manifest, known, add);
  checkNeeds(manifest, known, add);
  checkRoutes(manifest, add);
  checkWork(manifest, add);
  checkMetrics(manifest, add);
  checkPages(manifest, known, add);
  checkFields(manifest, add);
  checkSettings(manifest, known, add);
  return findings;
}

/** What it is called, and where it stands (E001 to E010). */
function checkNames(manifest: Manifest, known: ReadonlyMap<string, Manifest>, add: AddFinding): void {
  const platform = manifest.vertical === 'platform';
  if (manifest.sdk !== 1) add('E001', 'sdk', `The manifest speaks sdk ${String(manifest.sdk)}.`, 'Build it against sdk 1.');
  if (!SERVICE.test(manifest.id))
    add('E002', 'id', `"${manifest.id}" is not a service id.`, 'Use 1 to 31 characters of a-z and 0-9, starting with a letter, no hyphen.');
  if (!SERVICE.test(manifest.vertical))
    add('E003', 'vertical', `"${manifest.vertical}" is not a vertical.`, 'Use a-z and 0-9, starting with a letter.');
  const other = known.get(manifest.id);
  if (other && other !== manifest) add('E004', 'id', `Another plugin is already called "${manifest.id}".`, 'Choose another id.');
  if (!platform && [...known.values()].some(({ vertical, id }) => vertical === 'platform' && id === manifest.id))
    add('E005', 'id', 'The id belongs to the platform.', 'Choose another id.');
  if (!Number.isInteger(manifest.placement?.tier) || manifest.placement.tier < 0)
    add('E010', 'placement.tier', 'The tier is missing.', 'Use 50 for an application.');
  const growth = manifest.placement?.heap_growth;
  if (growth !== undefined && !(Number.isInteger(growth) && growth >= 20 && growth <= 400))
    add('E010', 'placement.heap_growth', `${String(growth)} is no share of the heap.`, 'Use a percentage from 20 to 400, or leave it out.');
  const memory = manifest.placement?.memory_mb;
  if (memory !== undefined && !(Number.isInteger(memory) && memory >= 64 && memory <= 4_096))
    add('E010', 'placement.memory_mb', `${String(memory)} is no size of a heap.`, 'Use 64 to 4096 whole megabytes, or leave it out.');
  const poll = manifest.placement?.outbox_poll_s;
  if (poll !== undefined && !(Number.isInteger(poll) && poll >= 1 && poll <= 60))
    add('E010', 'placement.outbox_poll_s', `${String(poll)} is no pace of an outbox.`, 'Use 1 to 60 whole seconds, or leave it out.');
}

/** What it uses of others (E021). */
function checkNeeds(manifest: Manifest, known: ReadonlyMap<string, Manifest>, add: AddFinding): void {
  const allNeeds = [
    { at: 'uses', needs: manifest.uses },
    ...Object.entries(manifest.workloads).map(([name, needs]) => ({ at: `workloads.${name}`, needs })),
  ];
  for (const [at, name, needs] of allNeeds.flatMap(({ at, needs }) =>
    Object.entries(needs).map(([name, actions]) => [at, name, actions] as const),
  )) {
    const used = known.get(name);
    // A neighbour of which there is only the contract, or that this distribution leaves out: calls to it fail, the plugin runs.
    if (!used) continue;
    for (const action of needs)
      if (!(action in used.actions))
        add('E021', `${at}.${name}`, `${name} has no action '${action}'.`, `Use one of: ${Object.keys(used.actions).join(', ')}.`);
  }
}
