import { isProblem, reply, type Reply } from '@platform/sdk';
import { type Ctx, isRefusal, type Of } from '../context.ts';
import { secretPurpose } from './instance-row.ts';
import type { Instances } from './instances.ts';

/** Secrets of confidential clients: told once, and changed for who did not hear it (APP-040, APP-041). */
export class ClientSecrets {
  readonly #ctx: Ctx;
  readonly #instances: Instances;

  constructor(ctx: Ctx, instances: Instances) {
    [this.#ctx, this.#instances] = [ctx, instances];
  }

  async rotate({
    params,
    env,
    caller,
  }: Of<'rotateSecret'>): Promise<Reply<{ client_id: string; client_secret: string; client_id_issued_at: number }>> {
    const row = await this.#instances.of(env, params.instance_id);
    const { instance_id, client_id } = row;
    if (row.status !== 'active' || client_id === null) throw this.#ctx.problem('instance_not_active', { detail: `It is ${row.status}.` });
    const { client_secret } = await this.#another(client_id, row.env_id);
    await this.#ctx.db.tx(async tx => {
      const sealed = tx.sql.json(this.#ctx.keys.secrets.seal(secretPurpose(instance_id), client_secret));
      await this.#instances.change(tx, row, { from: ['active'], set: { client_secret: sealed }, told: 'updated', caller });
    });
    return reply(
      { client_id, client_secret, client_id_issued_at: Number(row.client_id_issued_at) },
      { headers: { 'cache-control': 'no-store' } },
    );
  }

  async #another(client_id: string, targetEnvId: string): Promise<{ client_secret: string }> {
    try {
      return await this.#ctx.services.identity.rotateClientSecret({ params: { client_id }, targetEnvId });
    } catch (cause) {
      if (isRefusal(cause, 'client_without_secret'))
        throw this.#ctx.problem('client_without_secret', { detail: 'Its client is public: it proves itself by PKCE alone.', cause });
      throw this.#ctx.problem('neighbour_unavailable', {
        detail: `The identity service did not change it${isProblem(cause) ? `: ${cause.code}` : ''}.`,
        cause,
      });
    }
  }
}
