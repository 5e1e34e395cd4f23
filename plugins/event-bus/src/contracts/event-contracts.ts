import type { FieldFault, LivingService, RequestOf } from '@platform/sdk';
import type { eventBus } from '../../contract/index.ts';
import type { EventContract } from '../../contract/schema/event-contract.ts';
import type { EventBusContext } from '../context.ts';

const FRESH_MS = 2_000;
const MOST_BYTES = 1_048_576;

type Check = (payload: object) => readonly FieldFault[];
interface Declared {
  readonly id: string;
  readonly vertical: string;
  readonly events: Readonly<Record<string, { readonly payload: object }>>;
}

/**
 * What services declare that they publish: the platform's own from the catalog, those of verticals as the host says when it starts them.
 * A service that declares its events publishes no others; one that nobody has declared is open. Only shapes are looked at (BUS-024).
 */
export class EventContracts {
  readonly #ctx: EventBusContext;
  #checks: ReadonlyMap<string, Check> = new Map();
  #services: ReadonlySet<string> = new Set();
  #verticals: ReadonlySet<string> = new Set();
  #version = '';
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(ctx: EventBusContext) {
    this.#ctx = ctx;
    this.#know([]);
  }

  /** Refuses an event that its service did not declare, or whose payload does not fit, with a pointer to each fault. */
  check(eventType: string, payload: object): void {
    if (this.#ctx.clock.now().getTime() - this.#readAt >= FRESH_MS) void this.#refresh();
    const check = this.#checks.get(eventType);
    const { problem } = this.#ctx;
    if (!check) {
      const [vertical = '', service = ''] = eventType.split(':');
      if (this.#services.has(`${vertical}:${service}`) || (vertical !== 'platform' && this.#verticals.has(vertical))) {
        throw problem('invalid_event', {
          detail: `/event_type: ${vertical} declares no event '${eventType}'. Declare it in the contract of ${service}.`,
          extra: { errors: [{ pointer: '/event_type', code: 'undeclared', message: 'is not declared by its service' }] },
        });
      }
      return;
    }
    const faults = check(payload);
    if (faults.length > 0)
      throw problem('invalid_event', {
        detail: faults.map(({ pointer, message }) => `${pointer} ${message}`).join('; '),
        extra: { errors: faults },
      });
  }

  /** Keeps what one service of a vertical declares. The platform's own contracts are in the catalog and cannot be changed from outside. */
  async keep({
    params,
    body,
  }: RequestOf<typeof eventBus, 'keepEventContract'>): Promise<{ service: string; version: string; changed: boolean }> {
    const { db, problem } = this.#ctx;
    if (params.service !== body.service || body.vertical === 'platform')
      throw problem('env_mismatch', { detail: 'The path names the service of the body, which belongs to a vertical.' });
    const events = JSON.stringify(body.events);
    if (events.length > MOST_BYTES) throw problem('bad_schema', { detail: `At most ${MOST_BYTES} bytes.` });
    const foreign = Object.keys(body.events).find(name => !name.startsWith(`${body.vertical}:${body.service}:`));
    if (foreign !== undefined)
      throw problem('bad_schema', { detail: `'${foreign.slice(0, 260)}' is not an event of ${body.vertical}:${body.service}.` });
    for (const schema of Object.values(body.events)) this.#checkOf(schema);
    const { service, vertical, version } = body;
    const same = await db.sql<object[]>`
      with before as (select * from event_contracts where service = ${service}),
      kept as (
        insert into event_contracts (service, vertical, version, events) values (${service}, ${vertical}, ${version}, ${events})
        on conflict (service) do update set vertical = excluded.vertical, version = excluded.version, events = excluded.events,
          updated_at = now())
      select 1 from before where vertical = ${vertical} and version = ${version} and events = ${events}`;
    await this.load();
    return { service, version, changed: same.length === 0 };
  }

  /** Reads what verticals declare; called before the bus is ready, and now and then. */
  async load(): Promise<void> {
    this.#readAt = this.#ctx.clock.now().getTime();
    const { sql } = this.#ctx.db;
    const [state] = await sql<
      { version: string }[]
    >`select coalesce(max(updated_at)::text, '') || count(*) as version from event_contracts`;
    if (state?.version === this.#version) return;
    const rows = await sql<
      (Pick<EventContract, 'service' | 'vertical'> & { events: string })[]
    >`select service, vertical, events from event_contracts`;
    this.#version = state?.version ?? '';
    this.#know(
      rows.map(({ service: id, vertical, events }) => ({ id, vertical, events: eventsOf(JSON.parse(events) as EventContract['events']) })),
    );
  }

  /** Drops what these services declared before they were gone; one that came back since then has said it anew. */
  async forget(gone: readonly LivingService[]): Promise<void> {
    for (const { service, vertical, since } of gone)
      await this.#ctx.db.sql`delete from event_contracts where service = ${service} and vertical = ${vertical} and updated_at < ${since}`;
    await this.load();
  }

  #checkOf(schema: object): Check {
    try {
      return this.#ctx.catalog.checkOf(schema, { base: '/payload', foreign: true });
    } catch (cause) {
      throw this.#ctx.problem('bad_schema', { detail: 'A schema is an object of JSON Schema, nested at most 32 levels deep.', cause });
    }
  }

  async #refresh(): Promise<void> {
    await this.load().catch(error => this.#ctx.log.warn({ err: error }, 'what verticals declare cannot be read; what is known is used'));
  }

  #know(verticals: readonly Declared[]): void {
    const { catalog } = this.#ctx;
    const platform = catalog.manifests();
    const checks = new Map<string, Check>();
    for (const { events, trusted } of [
      ...verticals.map(each => ({ ...each, trusted: false })),
      ...platform.map(each => ({ ...each, trusted: true })),
    ])
      for (const [name, { payload }] of Object.entries(events))
        checks.set(name, catalog.checkOf(payload, { base: '/payload', foreign: !trusted }));
    this.#checks = checks;
    this.#services = new Set([...verticals, ...platform].map(({ id, vertical }) => `${vertical}:${id}`));
    this.#verticals = new Set([...verticals, ...platform].map(({ vertical }) => vertical));
  }
}

const eventsOf = (events: EventContract['events']): Declared['events'] =>
  Object.fromEntries(Object.entries(events).map(([name, payload]) => [name, { payload }]));
