import { type Caller, type RequestOf, SYSTEM, FLEET_KEYS } from '@platform/sdk';
import type { LivingService, VerticalLife } from '../../contract/schema/vertical-life.ts';
import type { AuditTrail } from '../audit/audit-trail.ts';
import type { Contract, Ctx, RegistryTx } from '../context.ts';
import type { DomainChanges } from '../domain-changes.ts';

/** A process that keeps a picture of the services reads it anew when something is said here. */
const CHANGED_CHANNEL = 'sys:verticals:changed';

interface Row {
  readonly service: string;
  readonly vertical: string;
  readonly version: string;
  readonly label: string;
  readonly life: VerticalLife;
  readonly withdrawn: boolean;
  readonly since: string;
}
interface Listed extends Omit<Row, 'label'> {
  readonly label: string | null;
  readonly stream_families: readonly string[] | null;
}
type Moved = Pick<Row, 'service' | 'vertical' | 'life'> & { readonly before: VerticalLife | null };

/** Where the life of every service of a vertical stands: known, enabled, draining or gone. Each step is told on the bus. */
export class VerticalLives {
  readonly #ctx: Ctx;
  readonly #parts: { readonly audit: AuditTrail; readonly changes: DomainChanges };

  constructor(ctx: Ctx, parts: { audit: AuditTrail; changes: DomainChanges }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** All of them, the platform's own among them, by service. */
  async list(): Promise<{ items: LivingService[]; next_cursor: null }> {
    const rows = await this.#ctx.db.sql<Listed[]>`
      with registered as (
        select entry ->> 'service' as service, vertical, digest, registered_at, entry ->> 'label' as label,
          entry -> 'stream_families' as families
        from verticals, jsonb_array_elements(registration -> 'services') entry)
      select coalesce(l.service, r.service) as service, coalesce(l.vertical, r.vertical) as vertical, coalesce(l.life, 'enabled') as life,
        coalesce(l.withdrawn, false) as withdrawn, coalesce(l.since, r.registered_at) as since,
          coalesce(r.label, nullif(l.label, '')) as label, r.families as stream_families,
        concat_ws(' ', nullif(l.version, ''), left(r.digest, 12)) as version
      from vertical_services l full join registered r on r.service = l.service and r.vertical = l.vertical
      order by 1`;
    const counts = await this.#ctx.kv.pipeline(rows.map(({ service }) => ['HLEN', FLEET_KEYS.instances(service)])).catch(() => []);
    return { items: rows.map((row, index) => shown(row, Number(counts[index] ?? 0))), next_cursor: null };
  }

  /** A machine found the plugin. One that somebody took out stays out. */
  async found({ params, body }: RequestOf<Contract, 'findVertical'>): Promise<LivingService> {
    const { service } = params;
    const { vertical, version, label } = body;
    const changed = await this.#ctx.db.tx(async tx => {
      const row = await this.#lock(tx, service);
      this.#refuseTaken(service, vertical, row);
      if (!row || (row.life === 'gone' && !row.withdrawn)) {
        await this.#move(tx, { service, vertical, life: 'known', before: row?.life ?? null }, { version, label });
        return true;
      }
      const renewed = await tx.sql<object[]>`update vertical_services set version = ${version}, label = ${label}
        where service = ${service} and (version, label) <> (${version}, ${label}) returning 1`;
      return renewed.length > 0;
    });
    if (changed) await this.tell();
    return this.#one(service);
  }

  /**
   * In the transaction of a registration: what it lists is enabled, and what it dropped is gone where none of its processes is left.
   * Whether any life changed by it.
   */
  async registered(tx: RegistryTx, vertical: string, services: readonly string[]): Promise<boolean> {
    const known = await tx.sql<Row[]>`
      select service, vertical, life, withdrawn from vertical_services where vertical = ${vertical} or service = any(${[...services]})
      order by service for update`;
    let moved = false;
    for (const service of services) {
      const row = known.find(each => each.service === service);
      this.#refuseTaken(service, vertical, row);
      if (row?.life === 'enabled' && row.vertical === vertical) continue;
      await this.#move(tx, { service, vertical, life: 'enabled', before: row?.life ?? null });
      moved = true;
    }
    const dropped = known.filter(row => row.vertical === vertical && row.life === 'enabled' && !services.includes(row.service));
    for (const { service, life } of dropped) {
      if (!(await this.#isAtRest(service))) continue;
      await this.#move(tx, { service, vertical, life: 'gone', before: life });
      moved = true;
    }
    return moved;
  }

  /** Services that somebody took out: what is registered of them does not count. */
  async withdrawn(): Promise<ReadonlySet<string>> {
    const rows = await this.#ctx.db.sql<{ service: string }[]>`select service from vertical_services where withdrawn`;
    return new Set(rows.map(({ service }) => service));
  }

  /** Its processes end what they have begun, on every machine; then nothing of it is left. */
  takeOut({ params, caller, correlationId }: RequestOf<Contract, 'takeOutVertical'>): Promise<LivingService> {
    return this.#decided(params.service, { caller, correlationId, action: 'vertical.taken_out' }, row =>
      row.life === 'draining' || (row.life === 'gone' && row.withdrawn) ? undefined : { life: 'draining', withdrawn: true },
    );
  }

  /** Machines that have its plugin start it again. */
  bringBack({ params, caller, correlationId }: RequestOf<Contract, 'bringBackVertical'>): Promise<LivingService> {
    return this.#decided(params.service, { caller, correlationId, action: 'vertical.brought_back' }, row =>
      row.withdrawn ? { life: 'known', withdrawn: false } : undefined,
    );
  }

  /** The last step, where nobody took it back in the meantime; false where somebody did. */
  async end(tx: RegistryTx, service: string): Promise<boolean> {
    const row = await this.#lock(tx, service);
    if (row?.life !== 'draining') return false;
    await this.#move(tx, { service, vertical: row.vertical, life: 'gone', before: row.life });
    return true;
  }

  /** Word to those who keep a picture, after the commit; without the store they find out by themselves (H-31). */
  async tell(): Promise<void> {
    await this.#ctx.kv
      .call('PUBLISH', CHANGED_CHANNEL, '')
      .catch(error => this.#ctx.log.warn({ err: error }, 'a change of the services was not published; it is found within 15 s'));
    await this.#parts.changes.relabel();
  }

  async #decided(
    service: string,
    { action, caller, correlationId }: { action: string; caller: Caller; correlationId: string },
    next: (row: Row) => { life: VerticalLife; withdrawn: boolean } | undefined,
  ): Promise<LivingService> {
    if (this.#isOurs(service))
      throw this.#ctx.problem('service_required', { detail: `${service} is a part of the platform and cannot be taken out.` });
    await this.#ctx.db.tx(async tx => {
      const row = await this.#lock(tx, service);
      if (!row) throw this.#ctx.problem('vertical_not_found', { detail: `No vertical has a service ${service}.` });
      const decision = next(row);
      if (!decision) return;
      const { life, withdrawn } = decision;
      await this.#move(tx, { service, vertical: row.vertical, life, before: row.life }, { withdrawn });
      if (life === 'draining') await tx.enqueue('seeOut', { service }, { key: service, at: this.#soon() });
      const details = { vertical: row.vertical, life, before: row.life };
      await this.#parts.audit.write(tx, {
        action,
        envId: SYSTEM.envId,
        caller,
        correlationId,
        resource: { type: 'vertical_service', id: service },
        details,
      });
    });
    await this.tell();
    return this.#one(service);
  }

  async #move(
    tx: RegistryTx,
    { service, vertical, life, before }: Moved,
    more: Partial<Pick<Row, 'version' | 'withdrawn' | 'label'>> = {},
  ) {
    const { version = null, withdrawn = null, label = null } = more;
    const [row] = await tx.sql<[{ since: string }]>`
      insert into vertical_services (service, vertical, life, version, label, withdrawn)
      values (${service}, ${vertical}, ${life}, ${version ?? ''}, ${label ?? ''}, ${withdrawn ?? false})
      on conflict (service) do update set vertical = excluded.vertical, life = excluded.life, since = now(),
        label = coalesce(${label}, vertical_services.label), version = coalesce(${version}, vertical_services.version),
          withdrawn = coalesce(${withdrawn}, vertical_services.withdrawn)
      returning since`;
    await tx.emit('platform:sys:vertical:changed', SYSTEM.envId, { service, vertical, life, before, at: row.since });
  }

  /** No process has ended before. */
  #soon(): Date {
    return new Date(this.#ctx.clock.now().getTime() + 1_000);
  }

  async #lock(tx: RegistryTx, service: string): Promise<Row | undefined> {
    const [row] = await tx.sql<
      Row[]
    >`select service, vertical, version, label, life, withdrawn, since from vertical_services where service = ${service} for update`;
    return row;
  }

  async #one(service: string): Promise<LivingService> {
    const found = (await this.list()).items.find(each => each.service === service);
    if (!found) throw this.#ctx.problem('vertical_not_found', { detail: `No vertical has a service ${service}.` });
    return found;
  }

  async #isAtRest(service: string): Promise<boolean> {
    // A store that does not answer is no reason to call anything gone.
    return (await this.#ctx.kv.call('HLEN', FLEET_KEYS.instances(service)).catch(() => 1)) === 0;
  }

  #isOurs(service: string): boolean {
    return this.#ctx.catalog.manifests().some(({ id, vertical }) => id === service && vertical === 'platform');
  }

  /** A name belongs to the first who has it, until it is gone (G-K-09). */
  #refuseTaken(service: string, vertical: string, row: Pick<Row, 'vertical' | 'life'> | undefined): void {
    const owner = this.#isOurs(service) ? 'platform' : row?.life === 'gone' ? vertical : (row?.vertical ?? vertical);
    if (owner !== vertical)
      throw this.#ctx.problem('service_taken', {
        detail: `${service} is a service of ${owner}. Give yours another id${
          owner === 'platform' ? '' : ', or have that one taken out first'
        }.`,
      });
  }
}

const NEXT = { known: 'take_out', enabled: 'take_out', draining: 'bring_back', gone: 'bring_back' } as const;

const shown = ({ withdrawn, label, stream_families: families, ...row }: Listed, instances: number): LivingService => ({
  ...row,
  label: label ?? row.service,
  stream_families: [...(families ?? [])],
  instances,
  next: row.vertical === 'platform' || (row.life === 'gone' && !withdrawn) ? 'nothing' : NEXT[row.life],
});
