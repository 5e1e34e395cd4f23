import { FLEET_KEYS } from '@platform/sdk';
import type { Ctx, RegistryTx } from '../context.ts';
import type { Registration } from '../../contract/schema/service.ts';
import { registrationWithout } from './registration-without.ts';
import type { VerticalLives } from './vertical-lives.ts';

/** After so long a process that nobody sees alive is not waited for: its machine went with it. */
const PATIENCE_MS = 120_000;

interface Leaving {
  readonly service: string;
  readonly vertical: string;
  readonly since: string;
}

/** Sees services out that were taken out: when their last process has ended, the registry forgets everything they had registered. */
export class Departures {
  readonly #ctx: Ctx;
  readonly #lives: VerticalLives;

  constructor(ctx: Ctx, lives: VerticalLives) {
    this.#ctx = ctx;
    this.#lives = lives;
  }

  /** Throws `vertical_running` while a process of it lives; one that was brought back meanwhile is left alone. */
  async seeOut(service: string): Promise<void> {
    const { db, log, problem } = this.#ctx;
    const [leaving] = await db.sql<
      Leaving[]
    >`select service, vertical, since from vertical_services where service = ${service} and life = 'draining'`;
    if (!leaving) return;
    if (!(await this.#hasEnded(leaving))) throw problem('vertical_running', { detail: `${service} is asked again until it has ended.` });
    if (!(await db.tx(tx => this.#forget(tx, leaving)))) return;
    await this.#lives.tell();
    log.info({ service_gone: service, vertical: leaving.vertical }, 'a service that was taken out is gone');
  }

  async #hasEnded({ service, since }: Leaving): Promise<boolean> {
    const { backends, clock, kv } = this.#ctx;
    if ((await kv.call('HLEN', FLEET_KEYS.instances(service))) === 0) return true;
    if (clock.now().getTime() - Date.parse(since) < PATIENCE_MS || (await backends.addresses(service)).length > 0) return false;
    await kv.call('DEL', FLEET_KEYS.instances(service));
    return true;
  }

  /** What environments had said about it goes too: the next service of this name begins anew. */
  async #forget(tx: RegistryTx, { service, vertical }: Leaving): Promise<boolean> {
    if (!(await this.#lives.end(tx, service))) return false;
    const [row] = await tx.sql<
      { registration: Registration }[]
    >`select registration from verticals where vertical = ${vertical} for update`;
    if (row) {
      const { services, ...rest } = registrationWithout(row.registration, new Set([service]));
      if (services.length === 0) await tx.sql`delete from verticals where vertical = ${vertical}`;
      else
        await tx.sql`update verticals set registration = ${tx.sql.json({ ...rest, services })},
          services = ${services.map(each => each.service)},
          digest = '' where vertical = ${vertical}`;
    }
    await tx.sql`delete from service_enablement where service = ${service}`;
    await tx.sql`delete from policy_sets where service = ${service}`;
    await tx.sql`delete from policy_relations where service = ${service}`;
    await tx.sql`delete from policy_attributes where service = ${service}`;
    return true;
  }
}
