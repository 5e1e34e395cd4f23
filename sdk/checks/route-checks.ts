import { type AnyRoute, gateActions, type Manifest, milliseconds } from '@platform/sdk';
import type { AddFinding } from './finding.ts';

const PLATFORM_DOORS = new Set(['raw', 'node', 'listener']);
const VERSIONED = /^\/v\d+\//;

/** Routes, who may use them, and the actions that they name (E030 to E044, E048, E049, E063, E064). */
export function checkRoutes(manifest: Manifest, add: AddFinding): void {
  const seen = new Set<string>();
  for (const [name, route] of Object.entries(manifest.routes)) {
    const where = `routes.${name}`;
    const gate = route.options.gate as AnyRoute['options']['gate'] | undefined;
    if (gate === undefined || gate === null) {
      add('E030', `${where}.gate`, 'The route has no gate.', "Name an action, or write { public: 'why nobody is asked' }.");
      continue;
    }
    checkGate(manifest, where, gate, add);
    checkOptions(manifest, where, route, add);
    checkIdempotency(where, route, add);
    checkBody(manifest, where, route, add);
    checkRate(where, route, add);
    const key = `${route.method} ${route.path.replaceAll(/\{[^}]+\}/g, '{}')}`;
    if (seen.has(key))
      add('E036', `${where}.path`, `Another route already answers ${route.method} ${route.path}.`, 'Change the path or the method.');
    seen.add(key);
  }
  checkVersions(manifest, add);
  checkActions(manifest, add);
}

const MEMBERS_OF_A_VERSION = ['version', 'row_version'];
const shapeOf = (path: string) => path.replaceAll(/\{[^}]+\}/g, '{}');

/** A record whose answer carries a version is changed under `If-Match`: at its own path, and by the verbs below it (G-K-03). */
function checkVersions({ routes }: Manifest, add: AddFinding): void {
  const requests = Object.entries(routes).filter(([, { door }]) => door === 'request');
  const records = new Set(
    requests
      .filter(([, { method, options }]) => (method === 'GET' || method === 'PUT') && isVersioned(options.returns))
      .map(([, { path }]) => shapeOf(path)),
  );
  const listings = new Set(
    requests
      .filter(([, { method, options }]) => method === 'GET' && 'cursor' in (options.query ?? {}))
      .map(([, { path }]) => shapeOf(path)),
  );
  for (const [name, { method, path, options }] of requests) {
    const shape = shapeOf(path);
    if (method === 'GET' || options.ifMatch || listings.has(shape)) continue;
    const below = isVersioned(options.returns) && [...records].some(record => shape.startsWith(`${record}/`));
    if (!records.has(shape) && !below) continue;
    add(
      'E039',
      `routes.${name}.ifMatch`,
      'The route changes a record with a version and does not look at If-Match.',
      'Write `ifMatch: true`, and call ctx.requireVersion(request.ifMatch, row.version) under the lock of the row.',
    );
  }
}

function isVersioned(schema: unknown): boolean {
  const { properties = {} } = (schema ?? {}) as { properties?: Record<string, { type?: string }> };
  return MEMBERS_OF_A_VERSION.some(member => properties[member]?.type === 'integer');
}

function checkGate(manifest: Manifest, where: string, gate: AnyRoute['options']['gate'], add: AddFinding): void {
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
}

/** No POST passes an `Idempotency-Key` over in silence (G-K-03). */
function checkIdempotency(where: string, { door, method, options }: AnyRoute, add: AddFinding): void {
  const { gate, idempotency } = options;
  const own = door === 'raw' || door === 'node';
  const anonymous = door === 'request' && method === 'POST' && typeof gate === 'object' && 'public' in gate;
  if (idempotency === undefined && (own || anonymous))
    add(
      'E048',
      `${where}.idempotency`,
      'The route takes what creates and does not say what becomes of a request that comes again under its Idempotency-Key.',
      "Write idempotency: 'kernel', 'secret' where the answer shows one, 'own' where the handler sees to it, or { none: 'why nothing is kept' }.",
    );
  if (door === 'node' && (idempotency === 'kernel' || idempotency === 'secret'))
    add('E048', `${where}.idempotency`, 'The kernel does not see what a node door answers.', "Write 'own' or { none: 'why' }.");
  if (typeof idempotency === 'object' && idempotency.none.trim().length < 8)
    add('E048', `${where}.idempotency`, 'A route that keeps no answers needs a reason.', 'Write why nothing is kept.');
}

function checkOptions(manifest: Manifest, where: string, { door, path, options }: AnyRoute, add: AddFinding): void {
  for (const code of options.problems ?? [])
    if (!(code in manifest.problems)) add('E033', `${where}.problems`, `No problem '${code}'.`, 'Declare it under `problems`.');
  for (const event of options.emits ?? [])
    if (!(event in manifest.events)) add('E034', `${where}.emits`, `No event '${event}'.`, 'Declare it under `events`.');
  if (options.dispatch && (door !== 'request' || typeof options.gate !== 'string'))
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
  const named = [...path.matchAll(/\{\*?([A-Za-z_]+)\}/g)].map(([, parameter]) => parameter as string);
  const params: Readonly<Record<string, unknown>> = options.params ?? {};
  for (const parameter of named)
    if (door === 'request' && !(parameter in params))
      add(
        'E064',
        `${where}.params.${parameter}`,
        `The path parameter ${parameter} has no schema.`,
        `Write \`params: { ${parameter}: Id }\`, or the schema that its values fit.`,
      );
  for (const parameter of Object.keys(params))
    if (!named.includes(parameter))
      add(
        'E064',
        `${where}.params.${parameter}`,
        `The path has no parameter ${parameter}.`,
        `Use one of: ${named.join(', ') || '(none)'}.`,
      );
  if (!VERSIONED.test(path) && !Object.keys(manifest.unversioned ?? {}).some(start => path.startsWith(start)))
    add(
      'W034',
      `${where}.path`,
      'The path carries no version.',
      "Start it with '/v1', or write unversioned: { '/…': 'which document fixes it' }.",
    );
  if (manifest.vertical !== 'platform' && PLATFORM_DOORS.has(door))
    add('E035', `${where}.door`, `A ${door} door is for platform services.`, 'Use get, post, put, del, upload, stream or socket.');
}

const LONGEST_BODY_MS = 3_600_000;

/** How much of a body a route takes, for how long, and what it says to more (E049). */
function checkBody(manifest: Manifest, where: string, { door, options }: AnyRoute, add: AddFinding): void {
  const { limit, within, bodyProblems = {}, body } = options;
  if (door === 'upload' && (limit === undefined || body !== undefined))
    add('E049', `${where}.limit`, 'An upload takes bytes, so many at most.', 'Write `limit` in bytes, and no `body`.');
  else if (limit !== undefined && !(Number.isInteger(limit) && limit > 0))
    add('E049', `${where}.limit`, `${String(limit)} is no number of bytes.`, 'Write a whole number above 0.');
  if (within !== undefined && !isAtMost(within, LONGEST_BODY_MS))
    add('E049', `${where}.within`, `'${within}' is no time that a body may take.`, "Write it as '30s' or '10m', an hour at most.");
  for (const code of Object.values(bodyProblems))
    if (!(code in manifest.problems)) add('E033', `${where}.bodyProblems`, `No problem '${code}'.`, 'Declare it under `problems`.');
}

/** How often a route may be asked, and by whom it is counted (E063). */
function checkRate(where: string, { options: { rate, gate } }: AnyRoute, add: AddFinding): void {
  if (!rate) return;
  if (![rate.max, rate.seconds].every(given => Number.isInteger(given) && given > 0))
    add('E063', `${where}.rate`, 'The rate is not so many in so many seconds.', 'Write whole numbers above 0.');
  if (rate.by === 'caller' && gateActions(gate) === undefined)
    add('E063', `${where}.rate`, 'A public route has no caller to count by.', "Count by 'address'.");
}

function isAtMost(duration: string, ms: number): boolean {
  try {
    const given = milliseconds(duration);
    return given > 0 && given <= ms;
  } catch {
    return false;
  }
}

function checkActions(manifest: Manifest, add: AddFinding): void {
  const platform = manifest.vertical === 'platform';
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
}
