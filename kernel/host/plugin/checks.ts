import type { AnyRoute, JobDef } from '@platform/sdk';
import { milliseconds } from '../../base/clock.ts';
import type { Manifest } from '../../base/manifest.ts';
import { gateActions } from '../../http/operation.ts';
import { cronOf } from '../../work/cron-times.ts';
import { brokenSubscriptions } from '../service/event-promises.ts';
import { checkMetrics } from './metric-checks.ts';
import { checkPages } from './page-checks.ts';

/** One fault of a manifest: a stable number, where, what, and what to do about it (house 8). */
export interface Finding {
  readonly id: string;
  readonly where: string;
  readonly what: string;
  readonly fix: string;
}

const SERVICE = /^[a-z][a-z0-9]{0,30}$/;
const EVENT = /^[a-z0-9_-]{1,64}(:[a-z0-9_-]{1,64}){3}$/;
const PLATFORM_DOORS = new Set(['raw', 'node', 'listener']);
/** Paths that documents fix without a version (C31, doc3). */
const UNVERSIONED =
  /^\/(v\d+\/|acme\/|\.well-known\/|oauth\/|mtls\/|scim\/|auth\/|bff\/|delegate\/|subscribe|ws$|proxy\/|audit$|openapi\.json$|\{\*)/;

/** Runs every check on a manifest; the kernel refuses to load on any `E`, and only warns on `W`. */
export function checkManifest(manifest: Manifest, known: ReadonlyMap<string, Manifest> = new Map()): Finding[] {
  const findings: Finding[] = [];
  const add = (id: string, where: string, what: string, fix: string) => findings.push({ id, where: `${manifest.id}.${where}`, what, fix });
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

  for (const name of Object.keys(manifest.events)) {
    const waived = manifest.waivers[name] !== undefined;
    const [vertical, service, , operation] = name.split(':');
    if (!EVENT.test(name) && !waived)
      add(
        'E011',
        `events.${name}`,
        'The name is not vertical:service:resource:operation.',
        'Use four segments of a-z, 0-9, _ and -, or waive it in `waivers` with the decision that allows it.',
      );
    if (vertical !== manifest.vertical)
      add(
        'E012',
        `events.${name}`,
        `The event belongs to '${vertical}', the plugin to '${manifest.vertical}'.`,
        `Start the name with '${manifest.vertical}:'.`,
      );
    else if (!waived && service !== manifest.id)
      add(
        'E013',
        `events.${name}`,
        `The second segment is '${service}', the service is '${manifest.id}'.`,
        `Use '${manifest.vertical}:${manifest.id}:…'.`,
      );
    if (/^v\d+$/.test(operation ?? '') || name.split(':').some(segment => /^v\d+$/.test(segment)))
      add('E014', `events.${name}`, 'Event names carry no version.', 'Add members to the payload, or make a new event name.');
  }

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

  for (const { consumer, subscription, event, why } of brokenSubscriptions(manifest, known)) {
    add(
      'E071',
      consumer === manifest.id ? `consumes.${subscription}` : `events.${event}`,
      `${consumer} hears '${event}' in ${subscription}: ${why}.`,
      'Keep the promise and add beside it, or publish the new shape under a new event name (G-K-20).',
    );
  }

  const seen = new Set<string>();
  for (const [name, route] of Object.entries(manifest.routes)) checkRoute(name, route);
  function checkRoute(name: string, { door, method, path, options }: AnyRoute): void {
    const where = `routes.${name}`;
    const gate = options.gate as AnyRoute['options']['gate'] | undefined;
    if (gate === undefined || gate === null)
      return void add('E030', `${where}.gate`, 'The route has no gate.', "Name an action, or write { public: 'why nobody is asked' }.");
    for (const action of gateActions(gate) ?? []) {
      if (!(action in manifest.actions))
        add(
          'E031',
          `${where}.gate`,
          `No action '${action}'.`,
          `Declare it, or use one of: ${Object.keys(manifest.actions).join(', ') || '(none declared)'}.`,
        );
    }
    if (typeof gate === 'object' && 'public' in gate && gate.public.trim().length < 8)
      add('E032', `${where}.gate`, 'A public route needs a reason.', 'Write why nobody is asked.');
    if (typeof gate === 'object' && 'signedIn' in gate && gate.signedIn.trim().length < 8)
      add('E032', `${where}.gate`, 'A route for every signed-in person needs a reason.', 'Write why no action is asked.');
    if (typeof gate === 'object' && 'authenticated' in gate && gate.authenticated.trim().length < 8)
      add('E032', `${where}.gate`, 'A route for every valid credential needs a reason.', 'Write why no action is asked.');
    for (const code of options.problems ?? [])
      if (!(code in manifest.problems)) add('E033', `${where}.problems`, `No problem '${code}'.`, 'Declare it under `problems`.');
    for (const event of options.emits ?? [])
      if (!(event in manifest.events)) add('E034', `${where}.emits`, `No event '${event}'.`, 'Declare it under `events`.');
    if (options.dispatch && (door !== 'request' || typeof gate !== 'string'))
      add(
        'E037',
        `${where}.dispatch`,
        'An action of operators is a request whose gate names one action.',
        'Name one action in the gate, or take `dispatch` away.',
      );
    if (options.errors && door !== 'raw' && door !== 'node')
      add(
        'E038',
        `${where}.errors`,
        'Callers of this door read problems (RFC 9457).',
        'Use a raw or node door for an API of another standard, or take `errors` away.',
      );
    if (!UNVERSIONED.test(path)) add('W034', `${where}.path`, 'The path carries no version.', "Start it with '/v1'.");
    if (!platform && PLATFORM_DOORS.has(door))
      add('E035', `${where}.door`, `A ${door} door is for platform services.`, 'Use get, post, put, del, stream or socket.');
    const key = `${method} ${path.replaceAll(/\{[^}]+\}/g, '{}')}`;
    if (seen.has(key)) add('E036', `${where}.path`, `Another route already answers ${method} ${path}.`, 'Change the path or the method.');
    seen.add(key);
  }

  for (const [action, { grants, title }] of Object.entries(manifest.actions)) {
    if (!/^[a-z][a-z0-9]*(:[a-z][a-z0-9_]*){1,2}$/.test(action))
      add('E040', `actions.${action}`, 'The action is not spelt service:resource:verb.', `Use '${manifest.id}:…:…'.`);
    else if (!platform && !action.startsWith(`${manifest.id}:`))
      add('E041', `actions.${action}`, 'The action belongs to another service.', `Start it with '${manifest.id}:'.`);
    if (!title) add('W042', `actions.${action}`, 'The action has no title.', 'Say in a few words what may be done; consent pages show it.');
    if (grants && !['read', 'write', 'admin'].includes(grants))
      add('E043', `actions.${action}.grants`, `'${String(grants)}' is no level.`, 'Use read, write or admin.');
  }
  for (const capability of manifest.capabilities)
    if (!platform) add('E044', 'capabilities', `'${capability}' is for platform services.`, 'Remove it.');

  for (const [name, job] of Object.entries(manifest.jobs)) {
    const fault = scheduleFault(job);
    if (fault) add('E045', `jobs.${name}`, fault, "Write every: '10s', or cron: '5 0 * * *' with an IANA timezone.");
  }
  for (const [name, { timeout, keep, keepDead, attempts = 1, backoff = [], slots = 1, sealed }] of Object.entries(manifest.tasks)) {
    const durations = [timeout, keep, keepDead].filter(value => value !== undefined && !isDuration(value));
    if (durations.length > 0)
      add('E046', `tasks.${name}`, `'${durations[0]}' is no duration.`, 'Write a number with ms, s, m, h or d, such as 30s.');
    if ((attempts !== 'unlimited' && (!Number.isInteger(attempts) || attempts < 1)) || backoff.some(wait => !(wait >= 0)))
      add('E046', `tasks.${name}`, 'Tries are whole numbers from 1 on, pauses are seconds.', 'Write attempts: 4, backoff: [1, 5, 30].');
    if (sealed !== undefined && manifest.keys?.[sealed]?.use !== 'seal')
      add('E046', `tasks.${name}.sealed`, `'${sealed}' is no key that seals.`, "Name one of the contract's keys with the use 'seal'.");
    if (!Number.isInteger(slots) || slots < 1 || slots > 256)
      add('E046', `tasks.${name}`, `${String(slots)} is no number of places.`, 'Write a whole number from 1 to 256, or leave it out.');
  }

  checkMetrics(manifest, add);
  checkPages(manifest, add);

  for (const [table, noun] of Object.entries({ ...manifest.onEnvironmentDeleted?.purge, ...manifest.onEnvironmentDeleted?.keep })) {
    if (!/^[a-z_][a-z0-9_]{0,62}$/.test(table))
      add(
        'E080',
        `onEnvironmentDeleted.${table}`,
        `"${table}" is no table of this service.`,
        'Name a table of the own schema, without a schema before it.',
      );
    if (noun.trim() === '')
      add(
        'E080',
        `onEnvironmentDeleted.${table}`,
        'Nothing says what its rows are, or why they stay.',
        "Write a noun such as 'loans', or the reason.",
      );
  }

  for (const [name, schema] of Object.entries(
    (manifest.config as { properties?: Record<string, { env?: string }> } | undefined)?.properties ?? {},
  )) {
    const prefix = platform ? 'PLATFORM_' : `${manifest.vertical.toUpperCase()}_`;
    if (!schema.env?.startsWith(prefix))
      add(
        'E060',
        `config.${name}.env`,
        'The setting names no environment variable of its own.',
        `Add env: '${prefix}${manifest.id.toUpperCase()}_…'.`,
      );
  }
  for (const [name, key] of Object.entries(manifest.keys ?? {})) {
    const prefix = platform ? 'PLATFORM_' : `${manifest.vertical.toUpperCase()}_`;
    if (!['seal', 'seeds'].includes(key.use))
      add('E061', `keys.${name}.use`, `'${String(key.use)}' is no use of a key.`, "Use 'seal', or 'seeds' for a secret of several lines.");
    if (!key.description)
      add(
        'E061',
        `keys.${name}.description`,
        'Nobody can tell what the key is for.',
        'Say it in a few words; the list of settings shows it.',
      );
    for (const setting of [key.documented, key.previous])
      if (setting !== undefined && !setting.startsWith(prefix))
        add('E061', `keys.${name}`, `The setting ${setting} is not one of this plugin's own.`, `Start it with '${prefix}'.`);
    if (key.file !== undefined && !/^[a-z0-9][a-z0-9.-]{0,63}$/.test(key.file))
      add('E061', `keys.${name}.file`, `"${key.file}" is no name of a file.`, 'Use a-z, 0-9, full stops and hyphens, or leave it out.');
  }
  return findings;
}

const isDuration = (text: string): boolean => {
  try {
    return milliseconds(text) > 0;
  } catch {
    return false;
  }
};

function scheduleFault(job: JobDef): string | undefined {
  if ((job.every === undefined) === (job.cron === undefined)) return 'A job has either every or cron.';
  if (job.every !== undefined && !isDuration(job.every)) return `'${job.every}' is no duration.`;
  if (job.timeout !== undefined && !isDuration(job.timeout)) return `'${job.timeout}' is no duration.`;
  if (job.cron === undefined) return undefined;
  if (job.runs !== 'fleet') return 'A cron time belongs to the fleet: one process takes it.';
  try {
    cronOf(job).nextRun();
    return undefined;
  } catch {
    return `'${job.cron}' (${job.timezone ?? 'UTC'}) is no cron time of a known zone.`;
  }
}

/** One line a person can act on. */
export const formatFinding = ({ id, where, what, fix }: Finding): string => `${id} ${where}   ${what}   ${fix}`;
