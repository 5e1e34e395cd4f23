import type { Filter } from 'scim2-parse-filter';
import type { ScimAttribute } from './scim-attribute.ts';
import { coerce, isDocument, type Json, type ScimDocument } from './scim-document.ts';
import { ScimError } from './scim-error.ts';
import { matches, readFilter } from './scim-filter.ts';
import { ENTERPRISE, pathOf, type ScimPath } from './scim-user-schema.ts';

const PATCH = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const MAX_OPERATIONS = 100;
const PATH = /^(?<attribute>[^[\]]+)(?:\[(?<filter>.*)\](?:\.(?<sub>[^[\].]+))?)?$/s;

interface Target extends ScimPath {
  readonly filter: Filter | undefined;
}

/** Applies a PATCH (RFC 7644, 3.5.2) to a copy: all of its operations, or none. */
export function patched(resource: ScimDocument, message: unknown): ScimDocument {
  const operations = isDocument(message) ? Object.entries(message).find(([name]) => name.toLowerCase() === 'operations')?.[1] : undefined;
  const schemas = isDocument(message) ? message['schemas'] : undefined;
  if (!Array.isArray(schemas) || !schemas.includes(PATCH)) throw new ScimError(400, `schemas names ${PATCH}.`, 'invalidSyntax');
  if (!Array.isArray(operations) || operations.length === 0 || operations.length > MAX_OPERATIONS)
    throw new ScimError(400, `Operations has 1 to ${MAX_OPERATIONS} entries.`, 'invalidSyntax');
  const result = structuredClone(resource);
  for (const operation of operations) apply(result, operation);
  return result;
}

function apply(resource: ScimDocument, operation: Json): void {
  if (!isDocument(operation)) throw new ScimError(400, 'An operation is an object.', 'invalidSyntax');
  const { path, value } = operation;
  // Some directories write the verbs with a capital.
  const op = typeof operation['op'] === 'string' ? operation['op'].toLowerCase() : '';
  if (op !== 'add' && op !== 'replace' && op !== 'remove') throw new ScimError(400, 'op is add, replace or remove.', 'invalidSyntax');
  if (path !== undefined && typeof path !== 'string') throw new ScimError(400, 'path is a text.', 'invalidPath');
  if (op !== 'remove' && value === undefined) throw new ScimError(400, `${op} needs a value.`, 'invalidValue');
  if (path !== undefined) return change(resource, op, targetOf(path), value);
  if (op === 'remove') throw new ScimError(400, 'remove needs a path.', 'noTarget');
  if (!isDocument(value)) throw new ScimError(400, `Without a path, ${op} takes an object.`, 'invalidValue');
  for (const [name, each] of Object.entries(value)) {
    const known = pathOf(PATH.exec(name)?.groups?.['attribute'] ?? '');
    // Every message may name its schemas and the resource; neither is changed by that. What the schema does not know is left out.
    if (!known || known.attribute?.mutability === 'readOnly' || known.attribute?.name === 'schemas') continue;
    change(resource, op, targetOf(name), each);
  }
}

function targetOf(spelled: string): Target {
  const { attribute = '', filter, sub } = PATH.exec(spelled)?.groups ?? {};
  const path = pathOf(sub ? `${attribute}.${sub}` : attribute);
  if (!path) throw new ScimError(400, `${spelled} names nothing.`, 'invalidPath');
  if (
    path.attribute &&
    (path.attribute.mutability === 'readOnly' || path.sub?.mutability === 'readOnly' || path.attribute.name === 'schemas')
  ) {
    throw new ScimError(400, `${spelled} is not for clients to change.`, 'mutability');
  }
  if (filter !== undefined && !path.attribute?.multiValued) throw new ScimError(400, `${attribute} has not several values.`, 'invalidPath');
  return { ...path, filter: filter === undefined ? undefined : readFilter(filter) };
}

type Verb = 'add' | 'replace' | 'remove';

function change(resource: ScimDocument, op: Verb, target: Target, value: Json | undefined): void {
  const { attribute, extension, filter, sub } = target;
  if (!extension) return changeIn(resource, op, attribute as ScimAttribute, sub, filter, value);
  const held = isDocument(resource[ENTERPRISE]) ? resource[ENTERPRISE] : {};
  if (attribute) changeIn(held, op, attribute, sub, filter, value);
  else if (op === 'remove') for (const name of Object.keys(held)) delete held[name];
  else if (isDocument(value))
    for (const [name, each] of Object.entries(value)) change({ [ENTERPRISE]: held }, op, targetOf(`${ENTERPRISE}:${name}`), each);
  else throw new ScimError(400, `${ENTERPRISE} is an object.`, 'invalidValue');
  if (Object.keys(held).length > 0) resource[ENTERPRISE] = held;
  else delete resource[ENTERPRISE];
}

function changeIn(
  holder: ScimDocument,
  op: Verb,
  attribute: ScimAttribute,
  sub: ScimAttribute | undefined,
  filter: Filter | undefined,
  value: Json | undefined,
): void {
  if (attribute.multiValued) return changeSeveral(holder, op, attribute, sub, filter, value);
  const { name } = attribute;
  if (sub) {
    const held = isDocument(holder[name]) ? holder[name] : {};
    put(held, sub, op === 'remove' ? undefined : coerce(sub, value, `${name}.${sub.name}`));
    return put(holder, attribute, Object.keys(held).length > 0 ? held : undefined);
  }
  if (op === 'remove') return put(holder, attribute, undefined);
  const coerced = coerce(attribute, value, name);
  // The parts of what has parts are added to those that are there.
  put(
    holder,
    attribute,
    attribute.type === 'complex' && isDocument(coerced) && isDocument(holder[name]) ? { ...holder[name], ...coerced } : coerced,
  );
}

function changeSeveral(
  holder: ScimDocument,
  op: Verb,
  attribute: ScimAttribute,
  sub: ScimAttribute | undefined,
  filter: Filter | undefined,
  value: Json | undefined,
): void {
  const { name } = attribute;
  const held = Array.isArray(holder[name]) ? holder[name] : [];
  const meant = (each: Json) => filter === undefined || matches(attribute, filter, each);
  if (op === 'remove') {
    // Some clients name by value what is to go.
    const named = value === undefined ? undefined : (coerce(attribute, value, name) as Json[] | undefined);
    const gone = (each: Json) => meant(each) && (named === undefined || named.some(one => same(one, each)));
    if (!sub) return put(holder, attribute, some(held.filter(each => !gone(each))));
    return put(
      holder,
      attribute,
      some(
        held
          .map(each => (gone(each) && isDocument(each) ? without(each, sub.name) : each))
          .filter(each => !isDocument(each) || Object.keys(each).length > 0),
      ),
    );
  }
  if (filter === undefined && !sub) {
    const given = (coerce(attribute, value, name) ?? []) as Json[];
    const kept = op === 'replace' ? [] : held.filter(each => !given.some(one => same(one, each)));
    return put(holder, attribute, some(onePrimary(kept, given)));
  }
  const part = sub
    ? coerce(sub, value, `${name}.${sub.name}`)
    : (coerce({ ...attribute, multiValued: false }, value, name) as Json | undefined);
  const selected = held.filter(meant);
  if (filter !== undefined && selected.length === 0) {
    // What a filter of equalities asks for can be added, and directories count on it; nothing is there to replace (RFC 7644, 3.5.2.3).
    const made = op === 'add' ? sample(filter) : undefined;
    if (!made) throw new ScimError(400, `No value of ${name} is meant by the filter.`, 'noTarget');
    const fresh = sub ? { ...made, ...(part === undefined ? {} : { [sub.name]: part }) } : { ...made, ...(isDocument(part) ? part : {}) };
    return put(holder, attribute, some(onePrimary(held, (coerce(attribute, [fresh], name) ?? []) as Json[])));
  }
  const changed = (each: Json): Json => {
    const base = isDocument(each) ? each : {};
    if (sub) return part === undefined ? without(base, sub.name) : { ...base, [sub.name]: part };
    return op === 'replace' || !isDocument(part) ? (part ?? base) : { ...base, ...part };
  };
  const given = selected.map(changed);
  const next = held.map(each => (meant(each) ? changed(each) : each));
  const primary = given.some(isPrimary);
  put(
    holder,
    attribute,
    coerce(
      attribute,
      primary
        ? next.map(each => (isPrimary(each) && !given.some(one => same(one, each)) ? without(each as ScimDocument, 'primary') : each))
        : next,
      name,
    ),
  );
}

const isPrimary = (value: Json): boolean => isDocument(value) && value['primary'] === true;
const some = (values: Json[]): Json[] | undefined => (values.length > 0 ? values : undefined);

/** A new primary value takes the place of the old one (RFC 7644, 3.5.2). */
function onePrimary(kept: Json[], given: Json[]): Json[] {
  return given.some(isPrimary)
    ? [...kept.map(each => (isPrimary(each) ? { ...(each as ScimDocument), primary: false } : each)), ...given]
    : [...kept, ...given];
}

function put(holder: ScimDocument, { name }: ScimAttribute, value: Json | undefined): void {
  if (value === undefined) delete holder[name];
  else holder[name] = value;
}

function without(value: ScimDocument, name: string): ScimDocument {
  const { [name]: _, ...rest } = value;
  return rest;
}

/** Two values are one when they agree in what is said of them, whatever the order. */
function same(left: Json, right: Json): boolean {
  if (!isDocument(left) || !isDocument(right)) return left === right;
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every(name => left[name] === right[name]);
}

function sample(filter: Filter): ScimDocument | undefined {
  if (filter.op === 'eq' && filter.compValue !== null) return { [filter.attrPath]: filter.compValue };
  if (filter.op !== 'and') return undefined;
  const parts = filter.filters.map(sample);
  return parts.includes(undefined) ? undefined : Object.assign({}, ...parts);
}
