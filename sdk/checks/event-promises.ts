import type { Manifest } from '@platform/sdk';

interface Node {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly format?: string;
}
interface Broken {
  readonly consumer: string;
  readonly subscription: string;
  readonly event: string;
  readonly why: string;
}

/**
 * Subscriptions that a manifest breaks or has broken: as the producer of an event somebody waits for, and as a consumer of somebody's.
 * Producers that are not known promise nothing and break nothing: they may live in another distribution.
 */
export function brokenSubscriptions(manifest: Manifest, known: ReadonlyMap<string, Manifest>): Broken[] {
  const others = [...known.values()].filter(({ id }) => id !== manifest.id);
  const mine = [manifest, ...others].flatMap(producer => brokenBetween(producer, manifest));
  const theirs = others.flatMap(consumer => brokenBetween(manifest, consumer));
  return [...mine, ...theirs];
}

function brokenBetween(producer: Manifest, consumer: Manifest): Broken[] {
  return Object.entries(consumer.consumes).flatMap(([subscription, { event, expects }]) => {
    const [vertical, service] = event.split(':');
    const declared = producer.events[event];
    const at = { consumer: consumer.id, subscription, event };
    if (!declared)
      return vertical === producer.vertical && service === producer.id ? [{ ...at, why: `${producer.id} declares no such event` }] : [];
    const why = expects && unkept(declared.payload as Node, expects as Node, '');
    return why ? [{ ...at, why }] : [];
  });
}

/** Why not every value of `promised` is one of `expected`; `undefined` when each is. Members beyond the expected do no harm (G-K-20). */
function unkept(promised: Node, expected: Node, at: string): string | undefined {
  const place = at || 'the payload';
  if (promised.anyOf) return promised.anyOf.map(one => unkept(one, expected, at)).find(why => why !== undefined);
  if (expected.anyOf)
    return expected.anyOf.some(one => unkept(promised, one, at) === undefined)
      ? undefined
      : `${place} may be of a kind that is not expected`;
  const values = valuesOf(expected);
  if (values) {
    const may = valuesOf(promised);
    const foreign = may?.find(value => !values.includes(value));
    if (!may || foreign !== undefined)
      return `${place} may be ${
        may ? JSON.stringify(foreign) : 'any value'
      }, expected is ${values.map(value => JSON.stringify(value)).join(', ')}`;
    return undefined;
  }
  if (
    expected.type !== undefined &&
    !kindsOf(promised).every(kind => kindsOf(expected).includes(kind) || (kind === 'integer' && kindsOf(expected).includes('number')))
  ) {
    return `${place} is ${kindsOf(promised).join(' or ') || 'anything'}, expected is ${kindsOf(expected).join(' or ')}`;
  }
  for (const keyword of ['pattern', 'format'] as const) {
    if (expected[keyword] !== undefined && promised[keyword] !== expected[keyword])
      return `${place} promises no ${keyword} ${expected[keyword]}`;
  }
  for (const [name, wanted] of Object.entries(expected.properties ?? {})) {
    const member = promised.properties?.[name];
    const needed = expected.required?.includes(name) ?? false;
    if (needed && !(member && promised.required?.includes(name))) return `${at}/${name} is not promised any more`;
    const why = member && unkept(member, wanted, `${at}/${name}`);
    if (why) return why;
  }
  return expected.items ? unkept(promised.items ?? {}, expected.items, `${at}/0`) : undefined;
}

const valuesOf = (node: Node): readonly unknown[] | undefined => ('const' in node ? [node.const] : node.enum);

function kindsOf(node: Node): readonly string[] {
  if (node.type !== undefined) return typeof node.type === 'string' ? [node.type] : node.type;
  return (valuesOf(node) ?? []).map(value => (value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value));
}
