import { BoundedMap, type Logger } from '@platform/sdk';
import { kernelProblem } from '../base/kernel-problem.ts';
import { newId } from '../base/ids.ts';
import type { Identity } from '../identity/tokens/verifier.ts';
import { CedarSet, type CedarQuestion } from './cedar.ts';
import { type Decision, EMPTY_SNAPSHOT, type PolicySet, type PolicySnapshot } from './policy-data.ts';

const MAX_ENVIRONMENTS = 1_000;
const MAX_DECISIONS = 1_000;

export interface PolicyQuestion {
  readonly identity: Identity;
  readonly action: string;
  readonly envId: string | undefined;
  readonly resource?: { readonly type: string; readonly id: string } | undefined;
  readonly correlationId: string;
}

export interface EngineOptions {
  readonly service: string;
  readonly log: Logger;
  /** Reads the tenant sets of one environment; rejects while the registry is away. */
  readonly load: (envId: string) => Promise<PolicySnapshot>;
  /** Environments that may be decided on the platform set alone until the registry has answered once: boot needs them. */
  readonly bootstrapEnvs: ReadonlySet<string>;
  readonly now?: () => Date;
}

interface Environment {
  snapshot: PolicySnapshot;
  enforced: CedarSet[];
  shadow: CedarSet[];
}

const BARE: Environment = { snapshot: EMPTY_SNAPSHOT, enforced: [], shadow: [] };

/**
 * Decides actions for one service: the platform's scope mirror first, then enforced tenant sets, which can only narrow it.
 * Shadow sets are evaluated after the fact and their differences logged; they never decide.
 */
export class PolicyEngine implements Disposable {
  readonly #options: EngineOptions;
  readonly #environments = new BoundedMap<string, Environment>(MAX_ENVIRONMENTS);
  readonly #loading = new Map<string, Promise<Environment>>();
  readonly #decisions: Decision[] = [];

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  /** Throws `policy_denied` with the decision's id unless the caller may. */
  async require(question: PolicyQuestion): Promise<void> {
    const mirrored = question.identity.scopes.has(question.action);
    const environment = mirrored ? await this.#environment(question.envId) : BARE;
    if (mirrored && environment.enforced.length === 0) {
      if (environment.shadow.length > 0) setImmediate(() => this.#shadow(question, environment));
      return;
    }
    const decision = mirrored ? this.#narrow(question, environment) : this.#decision(question, 'deny', 'scope-mirror');
    if (decision.effect === 'permit') {
      if (environment.shadow.length > 0) setImmediate(() => this.#shadow(question, environment));
      return;
    }
    this.#record(decision);
    throw kernelProblem('policy_denied', {
      detail: mirrored ? `A tenant policy forbids ${question.action}.` : `The caller does not hold ${question.action}.`,
      extra: { decision_id: decision.decision_id, action: question.action },
    });
  }

  async allows(question: PolicyQuestion): Promise<boolean> {
    if (!question.identity.scopes.has(question.action)) {
      this.#record(this.#decision(question, 'deny', 'scope-mirror'));
      return false;
    }
    const decision = this.#narrow(question, await this.#environment(question.envId));
    this.#record(decision);
    return decision.effect === 'permit';
  }

  /** What would be decided and by which policies; records nothing (dry run of G-K-10). */
  async explain(
    question: PolicyQuestion & { principal?: { type: 'User' | 'Workload'; id: string } },
  ): Promise<Decision & { trace: string[] }> {
    const held = question.identity.scopes.has(question.action);
    const trace = [`scope-mirror: ${held ? 'permit' : 'deny'} (${question.action} ${held ? 'is' : 'is not'} among the effective scopes)`];
    const environment = await this.#environment(question.envId);
    for (const set of [...environment.enforced, ...environment.shadow]) {
      const answer = set.evaluate(this.#cedar(question, environment));
      trace.push(
        `${set.set.mode} set ${set.set.name} v${set.set.version}: ${answer.permitted ? 'permit' : 'deny'}${
          answer.policyIds.length ? ` by ${answer.policyIds.join(', ')}` : ''
        }${answer.errors.length ? `; ${answer.errors.join('; ')}` : ''}`,
      );
    }
    return { ...(held ? this.#narrow(question, environment) : this.#decision(question, 'deny', 'scope-mirror')), trace };
  }

  /** Takes a payload-complete change (family `policy`): swapped in only when it is newer than what is loaded. */
  async changed(envId: string, set: PolicySet | null): Promise<void> {
    // What is being read for the first time may have been read before the change.
    await this.#loading.get(envId)?.catch(() => undefined);
    const known = this.#environments.get(envId);
    if (!known) return;
    const current = set && known.snapshot.sets.find(other => other.policy_set_id === set.policy_set_id);
    if (current && set && current.version >= set.version) return;
    await this.reload(envId);
  }

  /** The 30 second backstop: every loaded environment is read again (KRN-004, KRN-022). */
  async reloadAll(): Promise<void> {
    for (const envId of [...this.#environments.keys()])
      await this.reload(envId).catch(error =>
        this.#options.log.warn({ env_id: envId, err: error }, 'policy reload failed; the loaded sets stay in force'),
      );
  }

  async reload(envId: string): Promise<void> {
    const snapshot = await this.#options.load(envId);
    const before = this.#environments.get(envId);
    this.#environments.set(envId, this.#compile(snapshot));
    for (const set of [...(before?.enforced ?? []), ...(before?.shadow ?? [])]) set.release();
  }

  /** Lets go of compiled policies. */
  [Symbol.dispose](): void {
    for (const { enforced, shadow } of this.#environments.values()) for (const set of [...enforced, ...shadow]) set.release();
    this.#environments.clear();
  }

  /** The attributes of one principal in an environment; none where they cannot be read and the environment may go without. */
  async attributes(principal: string, envId: string): Promise<Readonly<Record<string, unknown>>> {
    const { snapshot } = await this.#environment(envId);
    return Object.fromEntries(snapshot.attributes.filter(row => row.principal === principal).map(({ key, value }) => [key, value]));
  }

  decisions(): readonly Decision[] {
    return this.#decisions;
  }

  async #environment(envId: string | undefined): Promise<Environment> {
    if (envId === undefined) return BARE;
    const known = this.#environments.get(envId);
    if (known) return known;
    let loading = this.#loading.get(envId);
    if (!loading) {
      loading = this.#load(envId).finally(() => this.#loading.delete(envId));
      this.#loading.set(envId, loading);
    }
    return loading;
  }

  async #load(envId: string): Promise<Environment> {
    try {
      const environment = this.#compile(await this.#options.load(envId));
      this.#environments.set(envId, environment);
      return environment;
    } catch (cause) {
      // Nobody may slip past a tenant's forbid because the registry is slow; only the boot environments may go without.
      if (this.#options.bootstrapEnvs.has(envId)) return BARE;
      throw kernelProblem('not_ready', { detail: 'The policies of this environment are not loaded yet.', cause });
    }
  }

  #compile(snapshot: PolicySnapshot): Environment {
    const tenant = snapshot.sets.filter(set => set.origin === 'tenant');
    const compiled = (mode: PolicySet['mode']) => tenant.filter(set => set.mode === mode).map(set => new CedarSet(set));
    return { snapshot, enforced: compiled('enforced'), shadow: compiled('shadow') };
  }

  #narrow(question: PolicyQuestion, environment: Environment): Decision {
    for (const set of environment.enforced) {
      const answer = set.evaluate(this.#cedar(question, environment));
      if (!answer.permitted) {
        if (answer.errors.length)
          this.#options.log.error({ policy_set_id: set.set.policy_set_id, errors: answer.errors }, 'policy evaluation failed; denied');
        return this.#decision(question, 'deny', set.set.policy_set_id, answer.policyIds[0]);
      }
    }
    return this.#decision(question, 'permit', 'scope-mirror');
  }

  #shadow(question: PolicyQuestion, environment: Environment): void {
    for (const set of environment.shadow) {
      const answer = set.evaluate(this.#cedar(question, environment));
      if (answer.permitted) continue;
      const decision = { ...this.#decision(question, 'deny', set.set.policy_set_id, answer.policyIds[0]), mode: 'shadow' as const };
      this.#record(decision);
      this.#options.log.info(
        { decision_id: decision.decision_id, policy_set_id: set.set.policy_set_id, action: question.action, policies: answer.policyIds },
        'shadow policy would have denied',
      );
    }
  }

  #cedar({ identity, action, resource, envId }: PolicyQuestion, { snapshot }: Environment): CedarQuestion {
    const { caller } = identity;
    return {
      principal: caller.kind === 'machine' ? { type: 'Workload', id: caller.subject } : { type: 'User', id: caller.userId },
      action,
      resource: resource ? `${resource.type}:${resource.id}` : `service:${this.#options.service}`,
      envId: envId ?? '',
      scopes: identity.scopes,
      relations: snapshot.relations,
      attributes: snapshot.attributes,
    };
  }

  #decision(question: PolicyQuestion, effect: Decision['effect'], setId: string, policyId?: string): Decision {
    const { caller } = question.identity;
    return {
      decision_id: newId(),
      at: (this.#options.now?.() ?? new Date()).toISOString(),
      env_id: question.envId ?? '',
      service: this.#options.service,
      principal: caller.kind === 'machine' ? `workload:${caller.subject}` : `user:${caller.userId}`,
      action: question.action,
      ...(question.resource ? { resource: `${question.resource.type}:${question.resource.id}` } : {}),
      effect,
      mode: 'enforced',
      policy_set_id: setId,
      ...(policyId === undefined ? {} : { policy_id: policyId }),
      correlation_id: question.correlationId,
    };
  }

  #record(decision: Decision): void {
    this.#decisions.unshift(decision);
    if (this.#decisions.length > MAX_DECISIONS) this.#decisions.length = MAX_DECISIONS;
    this.#options.log.debug({ ...decision }, 'policy decision');
  }
}
