import { type RequestOf, SYSTEM } from '@platform/sdk';
import type { SignInSettings as Settings } from '../../contract/schema/sign-in-settings.ts';
import type { Contract, Ctx } from '../context.ts';
import type { Realm, Realms } from '../realms.ts';

/** How the people of an environment sign in, as its administrators see and change it. */
export class SignInSettings {
  readonly #ctx: Ctx;
  readonly #realms: Realms;

  constructor(ctx: Ctx, { realms }: { realms: Realms }) {
    this.#ctx = ctx;
    this.#realms = realms;
  }

  async get({ env }: Pick<RequestOf<Contract, 'signInSettings'>, 'env'>): Promise<Settings> {
    return settingsOf(await this.#realms.ofEnv(env));
  }

  /** Whole: what the page shows is what is written. Counts from the next request on, in every process. */
  async put({ body, caller, env }: RequestOf<Contract, 'putSignInSettings'>): Promise<Settings> {
    const { env_id: envId } = await this.#realms.ofEnv(env);
    if (envId === SYSTEM.envId)
      throw this.#ctx.problem('realm_configured', {
        detail:
          'Set PLATFORM_AUTH_PASSKEYS, PLATFORM_AUTH_ACCOUNT_RECOVERY and PLATFORM_AUTH_RECOVERY_WAIT_HOURS, and start the platform again.',
      });
    await this.#ctx.db.tx(async tx => {
      const [held] = await tx.sql<Realm[]>`select * from realms where env_id = ${envId} for update`;
      if (!held) throw this.#ctx.problem('realm_not_found', { detail: 'The environment was removed a moment ago.' });
      const before = settingsOf(held);
      const changes = Object.fromEntries(
        Object.entries(body).flatMap(([name, to]) =>
          before[name as keyof Settings] === to ? [] : [[name, { from: before[name as keyof Settings], to }]],
        ),
      );
      if (Object.keys(changes).length === 0) return;
      await tx.sql`update realms set ${tx.sql.row(body)} where env_id = ${envId}`;
      await tx.audit({ action: 'auth.realm.updated', envId, caller, resource: { type: 'env', id: envId }, details: { changes } });
    });
    await this.#realms.changed();
    return body;
  }
}

const settingsOf = ({ verify_email, passkeys, wallet_sign_in, account_recovery, recovery_wait_hours }: Realm): Settings => ({
  verify_email,
  passkeys,
  wallet_sign_in,
  account_recovery,
  recovery_wait_hours,
});
