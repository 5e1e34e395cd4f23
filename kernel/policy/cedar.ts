import { createRequire } from 'node:module';
import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import type { FieldFault } from '@platform/sdk';
import type { Attribute, PolicySet, Relation } from './policy-data.ts';

const require = createRequire(import.meta.url);
let loaded: typeof Cedar | undefined;
/** 17 MB of memory, and most processes never meet a tenant's policy: loaded with the first. */
const cedar = (): typeof Cedar => (loaded ??= require('@cedar-policy/cedar-wasm/nodejs') as typeof Cedar);

/** Permits everything to everyone: a tenant set stands on it, so that only its `forbid`s count and it can never widen (house 24). */
const GROUND = 'permit(principal, action, resource);';
const MAX_SLICES = 10_000;

export interface CedarQuestion {
  readonly principal: { readonly type: 'User' | 'Workload'; readonly id: string };
  readonly action: string;
  readonly resource: string;
  readonly envId: string;
  readonly scopes: ReadonlySet<string>;
  readonly relations: readonly Relation[];
  readonly attributes: readonly Attribute[];
}
export interface CedarAnswer {
  readonly permitted: boolean;
  readonly policyIds: readonly string[];
  readonly errors: readonly string[];
}

/** The Cedar schema of a service: people and workloads in scopes, groups and relations, asking the declared actions of resources. */
export function cedarSchema(actions: readonly string[]): string {
  const declared = actions.map(
    action =>
      `action ${JSON.stringify(action)} appliesTo { principal: [User, Workload], resource: [Resource], context: { env_id: String } };`,
  );
  return [
    'entity Scope; entity Group; entity Relation;',
    'entity User in [Scope, Group, Relation] tags Set<String>;',
    'entity Workload in [Scope, Relation] tags Set<String>;',
    'entity Resource tags Relation;',
    ...declared,
  ].join('\n');
}

/** The generated platform set: an action is permitted to a caller that holds the scope of the same name (G-K-08). */
export const scopeMirror = (actions: readonly string[]): string =>
  actions
    .map(action => `permit(principal in Scope::${JSON.stringify(action)}, action == Action::${JSON.stringify(action)}, resource);`)
    .join('\n');

/** Faults of a policy text against the schema, with Cedar's own words and positions; empty when it holds. */
export function policyFaults(policies: string, actions: readonly string[]): FieldFault[] {
  const answer = cedar().validate({ schema: cedarSchema(actions), policies: { staticPolicies: policies } });
  const fault = (error: Cedar.DetailedError, policyId?: string): FieldFault => ({
    pointer: '/policies',
    code: error.code ?? 'cedar',
    message: [
      policyId,
      error.message,
      ...(error.sourceLocations ?? []).map(at => `at ${at.start}–${at.end}${at.label ? `: ${at.label}` : ''}`),
      error.help,
    ]
      .filter(Boolean)
      .join('; '),
  });
  if (answer.type === 'failure') return answer.errors.slice(0, 10).map(error => fault(error));
  return answer.validationErrors.slice(0, 10).map(({ policyId, error }) => fault(error, policyId));
}

/**
 * One policy set, cut into a preparsed slice per action: evaluation cost follows the policies that can match, not the set (facts/identity
 * 6).
 */
export class CedarSet {
  readonly set: PolicySet;
  readonly #policies: readonly { id: string; text: string; actions: ReadonlySet<string> | undefined }[];
  readonly #mirror: boolean;
  readonly #parsed = new Set<string>();
  /** Entities cannot be preparsed and dominate the cost of a question: scopes are sent only to a set that reads them. */
  readonly #readsScopes: boolean;

  /** `mirror` evaluates the text alone; a tenant set stands on `GROUND`. Throws when the text does not parse. */
  constructor(set: PolicySet, options: { mirror?: boolean } = {}) {
    this.set = set;
    this.#mirror = options.mirror ?? false;
    this.#readsScopes = set.policies.includes('Scope::');
    const parts = cedar().policySetTextToParts(set.policies);
    if (parts.type === 'failure') throw new Error(`policy set ${set.policy_set_id} does not parse`);
    // Two policies under one name would be one: the later would silently take the place of the earlier, a forbid included.
    const taken = new Set(['ground']);
    this.#policies = parts.policies.map((text, index) => {
      const named = idOf(text) ?? `policy${index}`;
      const id = taken.has(named) ? `${named}#${index}` : named;
      taken.add(id);
      return { id, text, actions: actionsOf(text) };
    });
  }

  evaluate(question: CedarQuestion): CedarAnswer {
    const { principal, action, resource, envId } = question;
    const answer = cedar().statefulIsAuthorized({
      principal,
      action: { type: 'Action', id: action },
      resource: { type: 'Resource', id: resource },
      context: { env_id: envId },
      preparsedPolicySetId: this.#slice(action),
      entities: entitiesFor(question, this.#readsScopes) as never,
    });
    if (answer.type === 'failure') return { permitted: false, policyIds: [], errors: answer.errors.map(error => error.message) };
    const { decision, diagnostics } = answer.response;
    // A policy that fails while it is evaluated counts for nothing in Cedar; a forbid that fails must not open the door.
    const failed = diagnostics.errors.map(({ policyId, error }) => `${policyId}: ${error.message}`);
    return {
      permitted: decision === 'allow' && failed.length === 0,
      policyIds: diagnostics.reason.filter(id => id !== 'ground'),
      errors: failed,
    };
  }

  #slice(action: string): string {
    const id = `${this.set.policy_set_id}@${this.set.version}/${action}`;
    if (!this.#parsed.has(id)) {
      const matching = this.#policies.filter(policy => policy.actions === undefined || policy.actions.has(action));
      const staticPolicies = Object.fromEntries([
        ...(this.#mirror ? [] : [['ground', GROUND]]),
        ...matching.map(({ id, text }) => [id, text]),
      ]);
      const parsed = cedar().preparsePolicySet(id, { staticPolicies });
      if (parsed.type === 'failure') throw new Error(`policy set ${this.set.policy_set_id} cannot be prepared for ${action}`);
      if (this.#parsed.size >= MAX_SLICES) this.release();
      this.#parsed.add(id);
    }
    return id;
  }

  /** The library has no delete: an empty set in its place gives the memory back. */
  release(): void {
    for (const id of this.#parsed) cedar().preparsePolicySet(id, { staticPolicies: '' });
    this.#parsed.clear();
  }
}

function actionsOf(text: string): ReadonlySet<string> | undefined {
  const answer = cedar().policyToJson(text);
  if (answer.type === 'failure') return undefined;
  const { action } = answer.json;
  if (action.op === '==' && 'entity' in action) return new Set([uidOf(action.entity)]);
  if (action.op === 'in') return new Set('entity' in action ? [uidOf(action.entity)] : action.entities.map(uidOf));
  return undefined;
}

function idOf(text: string): string | undefined {
  return /^\s*@id\("([A-Za-z0-9_.-]{1,64})"\)/.exec(text)?.[1];
}

const uidOf = (uid: unknown) => {
  const entity = (uid as { __entity?: { id: string } }).__entity ?? (uid as { id: string });
  return entity.id;
};

/**
 * The principal with its scopes and relations as parents, its attributes as tags; the resource with its relations; nothing that has nothing
 * to say.
 */
function entitiesFor({ principal, resource, scopes, relations, attributes }: CedarQuestion, readsScopes: boolean): object[] {
  const subject = `${principal.type === 'User' ? 'user' : 'workload'}:${principal.id}`;
  const held = relations.filter(relation => relation.object === resource);
  const parents = readsScopes ? [...scopes].map(id => ({ type: 'Scope', id })) : [];
  for (const { relation, subject: holder } of held)
    if (holder === subject) parents.push({ type: 'Relation', id: `${resource}#${relation}` });
  const own = attributes.filter(attribute => attribute.principal === subject);
  const entities: object[] = [];
  if (parents.length > 0 || own.length > 0) {
    entities.push({
      uid: principal,
      attrs: {},
      parents,
      tags: Object.fromEntries(own.map(({ key, value }) => [key, (Array.isArray(value) ? value : [value]).map(String)])),
    });
  }
  if (held.length > 0) {
    const tags = Object.fromEntries(
      held.map(({ relation }) => [relation, { __entity: { type: 'Relation', id: `${resource}#${relation}` } }]),
    );
    entities.push({ uid: { type: 'Resource', id: resource }, attrs: {}, parents: [], tags });
  }
  return entities;
}
