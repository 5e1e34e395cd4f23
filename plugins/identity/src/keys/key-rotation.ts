import { type Caller, type RequestOf, SYSTEM } from '@platform/sdk';
import type { Contract, Ctx } from '../context.ts';
import type { SigningKeys } from './signing-keys.ts';

/** Rotation of the signing keys: by the calendar, and when an administrator says so. The keys are the platform's, no environment's. */
export class KeyRotation {
  readonly #ctx: Ctx;
  readonly #keys: SigningKeys;

  constructor(ctx: Ctx, keys: SigningKeys) {
    this.#ctx = ctx;
    this.#keys = keys;
  }

  async list({ caller }: RequestOf<Contract, 'listKeys'>) {
    this.#require(caller);
    return { items: await this.#keys.list() };
  }

  async rotate({ caller }: RequestOf<Contract, 'rotateKeys'>) {
    this.#require(caller);
    if (!(await this.#rotate(caller)))
      throw this.#ctx.problem('keys_too_fresh', {
        detail: 'Try again ten minutes after the last rotation: until then verifiers may not have read the next keys.',
      });
    return { items: await this.#keys.list() };
  }

  async rotateWhenDue(): Promise<void> {
    if ((await this.#keys.due()) && (await this.#rotate())) this.#ctx.log.info({}, 'signing keys rotated');
  }

  #rotate(caller?: Caller) {
    return this.#keys.rotate((tx, kids) =>
      tx.audit({ action: 'auth.keys.rotated', envId: SYSTEM.envId, caller, resource: { type: 'signing_key', id: kids.join(' ') } }),
    );
  }

  /** A role of a tenant may name any action; what it names there means nothing here. */
  #require(caller: Caller): void {
    if (caller.envId !== SYSTEM.envId && !caller.platformAdmin)
      throw this.#ctx.problem('platform_only', { detail: 'Ask an administrator of the platform.' });
  }
}
