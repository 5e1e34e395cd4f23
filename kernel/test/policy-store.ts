import { ProblemError } from '@platform/sdk';
import type { PolicySet, PolicySnapshot } from '../policy/policy-data.ts';
import type { PolicyWriter } from '../policy/policy-port.ts';

/** The registry's side of the policy port, in memory: what a service is given and what it may overwrite. */
export class PolicyStore {
  readonly sets: PolicySet[] = [];
  readonly relations: PolicySnapshot['relations'][number][] = [];
  readonly attributes: PolicySnapshot['attributes'][number][] = [];
  reads = 0;
  away = false;
  /** In whose name each row was written or removed. */
  readonly writers: PolicyWriter[] = [];
  #next = 0;

  readonly stub = {
    policySnapshot: ({ query }: { query: { service: string; env_id: string } }) => {
      this.reads += 1;
      if (this.away) throw new ProblemError('sys', 'not_ready', { status: 500, title: 'The registry is away', retry: 'later' });
      const mine = <T extends { env_id: string; service: string }>(rows: readonly T[]) =>
        rows.filter(row => row.env_id === query.env_id && [query.service, '*'].includes(row.service));
      return { sets: mine(this.sets), relations: mine(this.relations), attributes: mine(this.attributes) };
    },
    policyUpsertSet: ({
      body,
    }: {
      body: { env_id: string; service: string; name: string; policies: string; mode?: PolicySet['mode'] } & PolicyWriter;
    }) => {
      this.#signed(body);
      const known = this.sets.find(set => set.env_id === body.env_id && set.name === body.name);
      if (known?.origin === 'platform')
        throw new ProblemError('sys', 'platform_origin_row', { status: 409, title: 'The platform manages this row', retry: 'never' });
      return known
        ? Object.assign(known, {
            policies: body.policies,
            mode: body.mode ?? known.mode,
            version: known.version + 1,
            updated_by: body.updated_by,
          })
        : this.put(body);
    },
    policyUpsertRelation: ({ body }: { body: Omit<PolicySnapshot['relations'][number], 'relation_id'> & PolicyWriter }) => {
      const row = { relation_id: `r${++this.#next}`, ...this.#signed(body) };
      this.relations.push(row);
      return row;
    },
    policyUpsertAttribute: ({ body }: { body: Omit<PolicySnapshot['attributes'][number], 'attribute_id'> & PolicyWriter }) => {
      const row = { attribute_id: `a${++this.#next}`, ...this.#signed(body) };
      this.attributes.push(row);
      return row;
    },
    policyPutAttributes: ({
      body,
    }: {
      body: { env_id: string; service: string; principal: string; values: Record<string, never> } & PolicyWriter;
    }) => {
      const { values, ...whose } = this.#signed(body);
      const mine = () => this.attributes.filter(row => Object.entries(whose).every(([name, value]) => row[name as 'env_id'] === value));
      const all = () => Object.fromEntries(mine().map(({ key, value }) => [key, value]));
      const before = all();
      for (const [key, value] of Object.entries(values)) {
        const at = this.attributes.findIndex(row => mine().includes(row) && row.key === key);
        if (at >= 0) this.attributes.splice(at, 1);
        if (value !== null) this.attributes.push({ attribute_id: `a${++this.#next}`, ...whose, key, value });
      }
      return { before, after: all() };
    },
    policyRemove: ({ body }: { body: { id: string } & PolicyWriter }) => {
      this.#signed(body);
      const at = this.sets.findIndex(set => set.policy_set_id === body.id);
      if (at < 0) throw new ProblemError('sys', 'policy_row_not_found', { status: 404, title: 'No such row', retry: 'never' });
      this.sets.splice(at, 1);
      return {};
    },
  };

  #signed<B extends PolicyWriter>({ updated_by, act, ...row }: B): Omit<B, keyof PolicyWriter> {
    this.writers.push({ updated_by, ...(act ? { act } : {}) });
    return row;
  }

  put(row: Partial<PolicySet> & { env_id: string; policies: string }): PolicySet {
    const set: PolicySet = {
      policy_set_id: `set-${++this.#next}-${Math.random()}`,
      service: 'probe',
      name: `set ${this.#next}`,
      origin: 'tenant',
      mode: 'shadow',
      version: 1,
      created_at: '',
      updated_at: '',
      updated_by: 'test',
      ...row,
    };
    this.sets.push(set);
    return set;
  }
}
