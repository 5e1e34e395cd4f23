import { commonAttributes, ENTERPRISE, enterpriseAttributes, pathOf, USER, userAttributes } from './scim-user-schema.ts';
import { named, type ScimAttribute } from './scim-attribute.ts';
import { ScimError } from './scim-error.ts';

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type ScimDocument = Record<string, Json>;

const MAX_TEXT = 4_096;
const MAX_BINARY = 65_536;
const MAX_VALUES = 200;

export const isDocument = (value: unknown): value is ScimDocument => typeof value === 'object' && value !== null && !Array.isArray(value);
const unassigned = (value: unknown): boolean => value === null || value === undefined || (Array.isArray(value) && value.length === 0);

/**
 * What a client sent, as the schema knows it: names as the schema spells them, values of their types. What the schema does not know is left
 * out, and so is what only the service writes (RFC 7644, 3.3 and 3.5.1).
 */
export function readUser(given: unknown): ScimDocument {
  if (!isDocument(given)) throw new ScimError(400, 'Send a user as a JSON object.', 'invalidSyntax');
  const { schemas } = given;
  if (!Array.isArray(schemas) || !schemas.some(urn => typeof urn === 'string' && urn.toLowerCase() === USER.toLowerCase())) {
    throw new ScimError(400, `schemas names ${USER}.`, 'invalidSyntax');
  }
  const read: ScimDocument = {};
  for (const [name, value] of Object.entries(given)) {
    if (name.toLowerCase() === ENTERPRISE.toLowerCase()) {
      if (unassigned(value)) continue;
      const extension = membersOf(enterpriseAttributes, value, ENTERPRISE);
      if (Object.keys(extension).length > 0) read[ENTERPRISE] = extension;
      continue;
    }
    const attribute = named(userAttributes, name) ?? named(commonAttributes, name);
    if (!attribute || attribute.mutability === 'readOnly' || attribute.name === 'schemas') continue;
    const coerced = coerce(attribute, value, attribute.name);
    if (coerced !== undefined) read[attribute.name] = coerced;
  }
  if (typeof read['userName'] !== 'string' || read['userName'].trim() === '')
    throw new ScimError(400, 'userName is required.', 'invalidValue');
  return read;
}

/** A value as its attribute wants it; `undefined` where it says that there is none (RFC 7643, 2.5). */
export function coerce(attribute: ScimAttribute, value: unknown, path: string): Json | undefined {
  if (unassigned(value)) return undefined;
  if (!attribute.multiValued) return single(attribute, value, path);
  const given = Array.isArray(value) ? value : [value];
  if (given.length > MAX_VALUES) throw wrong(path, `has at most ${MAX_VALUES} values`);
  const values = given.flatMap((each, index) => single(attribute, each, `${path}[${index}]`) ?? []);
  if (values.filter(each => isDocument(each) && each['primary'] === true).length > 1) throw wrong(path, 'has at most one primary value');
  return values.length > 0 ? values : undefined;
}

function single(attribute: ScimAttribute, value: unknown, path: string): Json | undefined {
  switch (attribute.type) {
    case 'complex': {
      // A bare text stands for the value of what has one.
      const members = membersOf(
        attribute.subAttributes ?? [],
        typeof value === 'string' && named(attribute.subAttributes, 'value') ? { value } : value,
        path,
      );
      return Object.keys(members).length > 0 ? members : undefined;
    }
    case 'boolean': {
      // Some directories write booleans as words.
      const said = typeof value === 'string' ? value.toLowerCase() : value;
      if (said === true || said === 'true') return true;
      if (said === false || said === 'false') return false;
      throw wrong(path, 'is true or false');
    }
    case 'dateTime':
      if (typeof value !== 'string' || Number.isNaN(Date.parse(value))) throw wrong(path, 'is a date and time');
      return value;
    default: {
      if (typeof value !== 'string') throw wrong(path, 'is a text');
      const most = attribute.type === 'binary' || attribute.type === 'reference' ? MAX_BINARY : MAX_TEXT;
      if (value.length > most) throw wrong(path, `has at most ${most} characters`);
      // Nothing that stores text takes a zero byte.
      if (value.includes('\0')) throw wrong(path, 'has no zero byte');
      return value;
    }
  }
}

function membersOf(attributes: readonly ScimAttribute[], value: unknown, path: string): ScimDocument {
  if (!isDocument(value)) throw wrong(path, 'is an object');
  const read: ScimDocument = {};
  for (const [name, given] of Object.entries(value)) {
    const attribute = named(attributes, name);
    if (!attribute || attribute.mutability === 'readOnly') continue;
    const coerced = coerce(attribute, given, `${path}.${attribute.name}`);
    if (coerced !== undefined) read[attribute.name] = coerced;
  }
  return read;
}

const wrong = (path: string, fault: string) => new ScimError(400, `${path} ${fault}.`, 'invalidValue');

/** The part of a resource that was asked for (RFC 7644, 3.9). `id` and `schemas` always come. */
export function projected(
  resource: ScimDocument,
  { attributes, excludedAttributes }: { attributes?: readonly string[] | undefined; excludedAttributes?: readonly string[] | undefined },
): ScimDocument {
  if (attributes && attributes.length > 0) {
    const kept: ScimDocument = { schemas: resource['schemas'] as Json, id: resource['id'] as Json };
    for (const spelled of attributes) copy(resource, kept, spelled);
    return kept;
  }
  const left = structuredClone(resource);
  for (const spelled of excludedAttributes ?? []) {
    const path = pathOf(spelled);
    if (!path || path.attribute?.returned === 'always') continue;
    const holder = path.extension ? left[ENTERPRISE] : left;
    if (!path.attribute) delete left[ENTERPRISE];
    else if (!isDocument(holder)) continue;
    else if (!path.sub) delete holder[path.attribute.name];
    else for (const each of [holder[path.attribute.name] ?? []].flat()) if (isDocument(each)) delete each[path.sub.name];
  }
  return left;
}

function copy(from: ScimDocument, to: ScimDocument, spelled: string): void {
  const path = pathOf(spelled);
  if (!path) return;
  if (path.extension) {
    const extension = from[ENTERPRISE];
    if (!isDocument(extension)) return;
    if (!path.attribute) {
      to[ENTERPRISE] = extension;
      return;
    }
    const into = isDocument(to[ENTERPRISE]) ? to[ENTERPRISE] : {};
    take(extension, into, path.attribute, path.sub);
    if (Object.keys(into).length > 0) to[ENTERPRISE] = into;
    return;
  }
  take(from, to, path.attribute as ScimAttribute, path.sub);
}

function take(from: ScimDocument, to: ScimDocument, attribute: ScimAttribute, sub: ScimAttribute | undefined): void {
  const value = from[attribute.name];
  if (value === undefined) return;
  if (!sub) {
    to[attribute.name] = value;
    return;
  }
  const part = (each: Json, kept: Json | undefined): ScimDocument => {
    const picked = isDocument(each) ? each[sub.name] : undefined;
    return { ...(isDocument(kept) ? kept : {}), ...(picked === undefined ? {} : { [sub.name]: picked }) };
  };
  const kept = to[attribute.name];
  to[attribute.name] = Array.isArray(value)
    ? value.map((each, index) => part(each, Array.isArray(kept) ? kept[index] : undefined))
    : part(value, kept);
}
