import { type Delivery, SYSTEM } from '@platform/sdk';
import type { AppInstances } from './apps/app-instances.ts';
import type { Ctx } from './context.ts';
import type { DelegatedTokens } from './proxy/delegated-tokens.ts';
import { DECIDED_CHANNEL } from './delegation/delegations.ts';
import type { FamilyFeeds } from './live/family-feeds.ts';
import type { LiveAccess } from './live/live-access.ts';
import type { LiveHub } from './live/live-hub.ts';
import type { LiveSockets } from './live/live-socket.ts';
import type { ServiceEnablement } from './proxy/service-enablement.ts';
import { ENDED_CHANNEL, type Sessions } from './session/sessions.ts';

interface Parts {
  readonly sessions: Sessions;
  readonly hub: LiveHub;
  readonly sockets: LiveSockets;
  readonly delegated: DelegatedTokens;
  readonly access: LiveAccess;
  readonly enablement: ServiceEnablement;
  readonly feeds: FamilyFeeds;
  readonly instances: AppInstances;
}
type SysEvent = Delivery<Readonly<Record<string, unknown>>>;

const DOMAIN_CHANNEL = 'platform:sys:domain:changed';
/** What the statistics service rolled up in the last minute (GWY-093). */
const ROLLUP_CHANNEL = 'stat:rollups:minute';
const ROLLUP_EVENT = 'platform:stat:traffic:snapshot';

/** Takes back what is no longer true: sessions that ended elsewhere, access that was withdrawn, services that were switched off. */
export class SessionReaper {
  readonly #ctx: Ctx;
  readonly #parts: Parts;

  constructor(ctx: Ctx, parts: Parts) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Hears the other processes; before the service is ready, so that nothing is missed. */
  async listen(): Promise<void> {
    const { kv } = this.#ctx;
    this.#ctx.own(await kv.subscribe(ENDED_CHANNEL, text => this.#ended((JSON.parse(text) as { hash: string }).hash)));
    this.#ctx.own(
      await kv.subscribe(DOMAIN_CHANNEL, text => this.#domainChanged(JSON.parse(text) as { env_id?: string; app_instance_id?: string })),
    );
    this.#ctx.own(
      await kv.subscribe(DECIDED_CHANNEL, text =>
        this.#delegationEnded(JSON.parse(text) as { session: string; delegation_id: string; state: string; env_id: string }),
      ),
    );
    this.#ctx.own(await kv.subscribe(ROLLUP_CHANNEL, text => this.#rolledUp(text)));
    await this.#parts.feeds.follow([]);
    // What verticals bring comes and goes while the gateway runs.
    this.#ctx.catalog.follow(services => this.#parts.feeds.follow(services));
  }

  /** The identity service ended a session: every gateway session that came from it goes, and its connections with it (GWY-006). */
  async identitySessionEnded(sid: string): Promise<void> {
    const { sessions } = this.#parts;
    const found = await sessions.store.ofIdentitySession(sid);
    await Promise.all(found.map(session => sessions.end(session, 'revoked', { revoke: false })));
  }

  async registryChanged(delivery: SysEvent, relay: (delivery: SysEvent) => Promise<void>): Promise<void> {
    if (delivery.event === 'platform:sys:service:updated') this.#parts.enablement.forget(delivery.envId);
    if (delivery.event.startsWith('platform:sys:app:')) this.#parts.instances.forget({ env_id: delivery.envId });
    await relay(delivery);
  }

  accessChanged(subjects: readonly string[]): void {
    this.#parts.access.changed(subjects);
    this.#parts.delegated.forget();
  }

  /** Warms connections, and finds sessions whose end was not heard or whose time is up. */
  async heartbeat(): Promise<void> {
    const { hub, sockets, sessions } = this.#parts;
    sockets.beat();
    await hub.each(({ channel }) => channel.push({ kind: 'ping' }));
    const hashes = [...new Set(hub.listeners.map(({ session }) => session.session_id_hash))];
    if (hashes.length === 0) return;
    const alive = await sessions.store.alive(hashes);
    for (const hash of hashes) if (!alive.has(hash)) this.#ended(hash);
  }

  #domainChanged(change: { env_id?: string; app_instance_id?: string }): void {
    this.#parts.enablement.forget(change.env_id);
    this.#parts.instances.forget(change);
  }

  #delegationEnded({
    session,
    delegation_id,
    state,
    env_id: envId,
  }: {
    session: string;
    delegation_id: string;
    state: string;
    env_id: string;
  }): void {
    const told =
      state === 'expired'
        ? { type: 'platform:delegation:expired', payload: { delegation_id } }
        : { type: 'platform:delegation:result', payload: { delegation_id, state } };
    this.#parts.hub.notify(session, { ...told, envId });
  }

  /** To every connection that asked for it and may see it: the hub's filters are those of any event. */
  #rolledUp(text: string): void {
    try {
      const payload = JSON.parse(text) as Record<string, unknown>;
      // Rollups of traffic are of all services of the platform, and are the system environment's own.
      const envId = typeof payload['env_id'] === 'string' ? payload['env_id'] : SYSTEM.envId;
      void this.#parts.hub.publish({ id: this.#ctx.platform.newId(), event: ROLLUP_EVENT, envId, payload });
    } catch (error) {
      this.#ctx.log.warn({ err: error }, 'a rollup could not be read');
    }
  }

  #ended(hash: string): void {
    this.#parts.delegated.forget(hash);
    this.#parts.hub.expire(hash);
  }
}
