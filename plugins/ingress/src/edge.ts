import type { ProcessLimit } from '@platform/sdk';
import type { Ctx } from './context.ts';
import { BodyIntake } from './body-intake.ts';
import { EdgeCertificates } from './certificates/edge-certificates.ts';
import { EdgeListener } from './edge-listener.ts';
import { HostMappings } from './host-mappings.ts';
import { EdgeTraffic } from './management/edge-traffic.ts';
import { openManagement, openChallenges } from './management/open-ports.ts';
import { Topology } from './management/topology.ts';
import { ChosenSettings } from './policy/chosen-settings.ts';
import { EdgeSettings } from './policy/edge-settings.ts';
import { RequestDoor } from './request-door.ts';
import { Findings } from './screening/findings.ts';
import { UnreadAnswers } from './unread-answers.ts';

/** The parts of the ingress and what they show of themselves. All of it is in memory: the ingress keeps nothing (ING-005, ING-016). */
export class Edge {
  readonly #ctx: Ctx;
  readonly mappings: HostMappings;
  readonly findings = new Findings();
  readonly settings: ChosenSettings;
  readonly #rates: ProcessLimit;
  readonly #bodies: BodyIntake;
  readonly #unread: UnreadAnswers;
  readonly #certificates: EdgeCertificates;
  readonly #traffic: EdgeTraffic;
  readonly #topology: Topology;
  readonly #door: RequestDoor;
  readonly #listener: EdgeListener;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
    this.mappings = new HostMappings(ctx);
    // In memory alone (ING-008): what each environment allows is asked with each request.
    this.#rates = ctx.limit({ counts: 'process', name: 'edge', perSecond: ctx.config.rateLimitRps, burst: ctx.config.rateLimitRps * 2 });
    this.#bodies = new BodyIntake(ctx);
    this.#unread = new UnreadAnswers(ctx);
    this.#certificates = new EdgeCertificates(ctx);
    this.#traffic = new EdgeTraffic(ctx);
    this.#topology = new Topology(ctx);
    const { mappings, findings } = this;
    const inForce = new EdgeSettings(ctx);
    this.settings = new ChosenSettings(ctx, inForce);
    this.#door = new RequestDoor(ctx, {
      mappings,
      findings,
      bodies: this.#bodies,
      unread: this.#unread,
      settings: inForce,
      rates: this.#rates,
      traffic: this.#traffic,
    });
    this.#listener = new EdgeListener(ctx, { mappings, certificates: this.#certificates, door: this.#door, traffic: this.#traffic });
  }

  async start(): Promise<void> {
    const { own, kv, config } = this.#ctx;
    own(await kv.subscribe('platform:sys:domain:changed', message => this.mappings.forget(hostnamesOf(message))));
    await this.#topology.start();
    await this.#certificates.start();
    await this.#listener.listen(config.httpsPort, config.address);
    own(this.#listener);
    await openChallenges(this.#ctx);
    await openManagement(this.#ctx, this.#bodies);
  }

  /** Leaves a shared socket to the next instance. */
  leave(): Promise<void> {
    return this.#listener.leave();
  }

  /** Gauges and counters. */
  get figures(): Readonly<Record<string, number>> {
    const { total } = this.#traffic;
    const bodies = Object.entries({ ...this.#bodies.figures, ...this.#unread.figures }).map(([name, value]) => [`edge_${name}`, value]);
    const totals = Object.entries(total).map(([name, value]) => [`edge_${name}_total`, value]);
    return {
      edge_requests: this.#door.active,
      post_quantum_percent: percent(total.handshakes_post_quantum, total.handshakes),
      ...this.#listener.figures,
      ...Object.fromEntries([...bodies, ...totals]),
      ...this.#certificates.figures,
      rate_buckets: this.#rates.size,
      rate_limited_total: this.#rates.refused,
      ...this.findings.figures,
      ...this.#topology.figures,
    };
  }

  /** What the ingress adds to its health; `active_connections` is what the supervisor waits for when it drains (ING-023, ING-024). */
  health(): Readonly<Record<string, unknown>> {
    const known = this.mappings.known();
    const platform = known.filter(({ source }) => source === 'platform').length;
    return {
      active_connections: this.#door.active,
      mappings: { total: known.length, platform, registry: known.length - platform, age_s: this.#topology.ageSeconds() },
      services: this.#topology.services,
    };
  }

  async backends() {
    const now = this.#ctx.clock.now().getTime();
    const found = await Promise.all(
      Object.keys(this.#topology.services).map(async service =>
        (await this.#ctx.backends.addresses(service)).map(({ last_health_at: heard, suspect_until: until, ...address }) => ({
          backend: `${address.ip}:${address.port}`,
          service,
          ...address,
          health_age_s: heard === null ? null : Math.max(0, Math.floor((now - Date.parse(heard)) / 1_000)),
          suspect: until !== undefined,
          suspect_until: until === undefined ? null : new Date(until).toISOString(),
        })),
      ),
    );
    return found.flat();
  }

  windows() {
    return this.#traffic.recent().map(({ at, counts, statuses, latency_ms: { p50, p95, p99 } }) => ({
      at,
      requests: counts.requests,
      connections: counts.connections,
      piped: counts.piped,
      status_2xx: statuses['2xx'] ?? 0,
      status_3xx: statuses['3xx'] ?? 0,
      status_4xx: statuses['4xx'] ?? 0,
      status_5xx: statuses['5xx'] ?? 0,
      p50_ms: p50,
      p95_ms: p95,
      p99_ms: p99,
      post_quantum_percent: percent(counts.handshakes_post_quantum, counts.handshakes),
    }));
  }
}

const percent = (part: number, whole: number): number => (whole === 0 ? 0 : Math.round((part / whole) * 1_000) / 10);

/** The hosts a change is about; `undefined` stands for all, and so does a message nobody can read. */
function hostnamesOf(message: string): readonly string[] | undefined {
  try {
    const { hostnames } = JSON.parse(message) as { hostnames?: unknown };
    return Array.isArray(hostnames) ? hostnames.map(String) : undefined;
  } catch {
    return undefined;
  }
}
