import { isDocument, type Json, type ScimDocument } from './scim-document.ts';
import { BULK } from './scim-discovery.ts';
import { ScimError } from './scim-error.ts';

const REQUEST = 'urn:ietf:params:scim:api:messages:2.0:BulkRequest';
const RESPONSE = 'urn:ietf:params:scim:api:messages:2.0:BulkResponse';

export interface BulkOperation {
  readonly method: string;
  readonly path: string;
  readonly ifMatch: string | undefined;
  readonly data: Json | undefined;
}
/** What came of one operation: the resource's place and version, or the refusal. */
export type BulkOutcome = { readonly status: number; readonly location?: string; readonly version?: string; readonly error?: object };
interface Operator {
  readonly run: (operation: BulkOperation) => Promise<BulkOutcome>;
  /** What an operation that failed is told. */
  readonly refused: (error: unknown) => BulkOutcome;
}

/**
 * Many changes in one request (RFC 7644, 3.7), one after the other, each for itself. A resource may name one that an earlier operation made
 * by its `bulkId`; a later one is not waited for.
 */
export async function runBulk(message: unknown, by: Operator): Promise<object> {
  const { operations, failOnErrors } = readBulk(message);
  const made = new Map<string, string>();
  const results: object[] = [];
  let errors = 0;
  for (const operation of operations) {
    if (failOnErrors !== undefined && errors >= failOnErrors) break;
    const method = typeof operation['method'] === 'string' ? operation['method'].toUpperCase() : '';
    const bulkId = typeof operation['bulkId'] === 'string' ? operation['bulkId'] : undefined;
    const outcome = await attempt(operation, method, made, by);
    if (outcome.error) errors += 1;
    else if (method === 'POST' && bulkId !== undefined && outcome.location) made.set(bulkId, outcome.location.split('/').at(-1) as string);
    const { status, location, version, error } = outcome;
    results.push({
      method,
      ...(bulkId === undefined ? {} : { bulkId }),
      ...(version === undefined ? {} : { version }),
      ...(location === undefined ? {} : { location }),
      status: String(status),
      ...(error ? { response: error } : {}),
    });
  }
  return { schemas: [RESPONSE], Operations: results };
}

async function attempt(
  operation: ScimDocument,
  method: string,
  made: ReadonlyMap<string, string>,
  { run, refused }: Operator,
): Promise<BulkOutcome> {
  try {
    const { path, version, data, bulkId } = operation;
    if (!['POST', 'PUT', 'PATCH', 'DELETE'].includes(method))
      throw new ScimError(400, 'method is POST, PUT, PATCH or DELETE.', 'invalidSyntax');
    if (method === 'POST' && (typeof bulkId !== 'string' || bulkId === ''))
      throw new ScimError(400, 'A POST has a bulkId.', 'invalidSyntax');
    if (typeof path !== 'string') throw new ScimError(400, 'path is a text.', 'invalidPath');
    return await run({
      method,
      path: resolved(path, made) as string,
      ifMatch: typeof version === 'string' ? version : undefined,
      data: data === undefined ? undefined : resolved(data, made),
    });
  } catch (error) {
    return refused(error);
  }
}

function resolved(value: Json, made: ReadonlyMap<string, string>): Json {
  if (typeof value === 'string') {
    return value.replaceAll(/(^|\/)bulkId:([^/]+)/g, (_, before: string, name: string) => {
      const id = made.get(name);
      if (id === undefined) throw new ScimError(409, `No earlier operation made ${name}.`, 'invalidValue');
      return `${before}${id}`;
    });
  }
  if (Array.isArray(value)) return value.map(each => resolved(each, made));
  if (!isDocument(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, resolved(each, made)]));
}

function readBulk(message: unknown): { operations: readonly ScimDocument[]; failOnErrors: number | undefined } {
  const { schemas, Operations: operations, failOnErrors } = isDocument(message) ? message : {};
  if (!Array.isArray(schemas) || !schemas.includes(REQUEST)) throw new ScimError(400, `schemas names ${REQUEST}.`, 'invalidSyntax');
  if (!Array.isArray(operations) || !operations.every(isDocument))
    throw new ScimError(400, 'Operations is a list of objects.', 'invalidSyntax');
  if (operations.length > BULK.operations) throw new ScimError(413, `A bulk request has at most ${BULK.operations} operations.`);
  if (failOnErrors !== undefined && (!Number.isSafeInteger(failOnErrors) || (failOnErrors as number) < 1))
    throw new ScimError(400, 'failOnErrors is a whole number from 1.', 'invalidValue');
  return { operations, failOnErrors: failOnErrors as number | undefined };
}
