import { type Caller, isCorrelationId } from '@platform/sdk';
import { EVENT_TYPE, MAX_PAYLOAD_BYTES, ProduceRequest } from '../../contract/schema/event.ts';
import type { Admission } from './admission.ts';
import { type EventBusContext, familyOf } from '../context.ts';
import type { EventContracts } from '../contracts/event-contracts.ts';
import type { InboxRow } from '../inbox/inbox-group.ts';
import { NO_KEY } from './minted-key.ts';

/** An event as it came, before anything is known of it. */
export type Given = ProduceRequest | { readonly [K in keyof ProduceRequest]?: ProduceRequest[K] | undefined };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
/** Control characters are no text to the database. */
const isStorable = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text);

interface TextMember {
  readonly name: string;
  readonly read: (event: { [K in keyof ProduceRequest]?: unknown }) => unknown;
  readonly fits: (text: string) => boolean;
}
/** Members that are text, when they are there; read by names that the engine knows. */
const TEXTS: readonly TextMember[] = [
  { name: 'env_id', read: ({ env_id }) => env_id, fits: text => UUID.test(text) },
  {
    name: 'idempotency_key',
    read: ({ idempotency_key }) => idempotency_key,
    fits: text => text.length > 0 && text.length <= 256 && isStorable(text),
  },
  { name: 'correlation_id', read: ({ correlation_id }) => correlation_id, fits: text => isCorrelationId(text) },
  { name: 'created_at', read: ({ created_at }) => created_at, fits: text => INSTANT.test(text) && !Number.isNaN(Date.parse(text)) },
  {
    name: 'publisher_id_token',
    read: ({ publisher_id_token }) => publisher_id_token,
    fits: text => text.length <= 16_384 && isStorable(text),
  },
];
const MEMBERS: ReadonlySet<string> = new Set(Object.keys(ProduceRequest.properties));

/** What an event must be before it is stored, whether for now or for later, asked in the order of G-BUS-01. */
export class Acceptance {
  readonly #ctx: EventBusContext;
  readonly #admission: Admission;
  readonly #contracts: EventContracts;

  constructor(ctx: EventBusContext, admission: Admission, contracts: EventContracts) {
    this.#ctx = ctx;
    this.#admission = admission;
    this.#contracts = contracts;
  }

  /** A name that breaks the grammar is taken from the service whose contract says by which decision. */
  #isWaived(event: string, { service }: Caller): boolean {
    return this.#ctx.catalog.manifests().some(({ id, vertical, waivers }) => vertical === 'platform' && id === service && event in waivers);
  }

  /** The checks that need nothing but the request. Events of one request were taken in one moment, `now`. */
  read(event: Given, caller: Caller, correlationId: string, now = this.#ctx.clock.now().toISOString()): InboxRow {
    const { problem, platform } = this.#ctx;
    if (typeof event !== 'object' || event === null || Array.isArray(event))
      throw problem('invalid_event', { detail: 'An event is a JSON object.' });
    const { event_type, stream_family, payload, idempotency_key, correlation_id, created_at, publisher_id_token } = event;
    if (typeof event_type !== 'string' || !(EVENT_TYPE.test(event_type) || this.#isWaived(event_type, caller))) {
      throw problem('invalid_event_type', {
        detail: 'An event name has four segments of a-z, 0-9, underscore and hyphen, joined by colons.',
      });
    }
    familyOf(this.#ctx, typeof stream_family === 'string' ? stream_family : '');
    if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) throw problem('payload_not_object');
    const text = JSON.stringify(payload);
    if (text.length > MAX_PAYLOAD_BYTES || Buffer.byteLength(text) > MAX_PAYLOAD_BYTES)
      throw problem('payload_too_large', { detail: `At most ${MAX_PAYLOAD_BYTES} bytes.` });
    this.#checkShape(event);
    const env = this.#environment(event.env_id, caller);
    this.#checkOwnership(event_type, caller);
    this.#contracts.check(event_type, payload);
    return {
      id: platform.newId(),
      env,
      family: stream_family as string,
      envelope: {
        event_type,
        payload: text,
        created_at: created_at === undefined ? now : new Date(created_at).toISOString(),
        produced_at: now,
        produced_by: caller.clientId,
        publisher_subject: caller.subject,
        ...(publisher_id_token === undefined ? {} : { publisher_id_token }),
        correlation_id: correlation_id ?? correlationId,
        idempotency_key: idempotency_key ?? NO_KEY,
      },
    };
  }

  /** Suspension and rate, per environment; the platform itself is held up by neither. One refusal or none per row. */
  async admit({ vertical }: Caller, rows: readonly InboxRow[]): Promise<readonly (Error | undefined)[]> {
    const refusals: (Error | undefined)[] = rows.map(() => undefined);
    if (vertical === 'platform') return refusals;
    for (const env of new Set(rows.map(row => row.env))) {
      const members = rows.flatMap((row, index) => (row.env === env ? [index] : []));
      if (await this.#admission.isSuspended(env)) {
        for (const index of members)
          refusals[index] = this.#ctx.problem('env_suspended', {
            detail: 'The environment is suspended; publish again when it is active.',
          });
        continue;
      }
      const granted = await this.#admission.take(env, members.length);
      for (const index of members.slice(granted)) refusals[index] = this.#limited();
    }
    return refusals;
  }

  /** What the schema checks for a single event, for a row of a batch. */
  #checkShape(event: { [K in keyof ProduceRequest]?: ProduceRequest[K] | undefined }): void {
    for (const { name, read, fits } of TEXTS) {
      const value = read(event);
      if (value !== undefined && !(typeof value === 'string' && fits(value)))
        throw this.#ctx.problem('invalid_event', { detail: `${name} does not fit.` });
    }
    for (const member in event)
      if (!MEMBERS.has(member)) throw this.#ctx.problem('invalid_event', { detail: `${member.slice(0, 64)} is not a member of an event.` });
  }

  #environment(given: string | undefined, caller: Caller): string {
    if (caller.kind === 'user') {
      if (given !== undefined && given !== caller.envId)
        throw this.#ctx.problem('env_mismatch', { detail: 'The token is for another environment.' });
      return caller.envId ?? '';
    }
    if (given === undefined) throw this.#ctx.problem('env_required', { detail: 'A workload names the environment in env_id.' });
    return given;
  }

  /** The first segment is the vertical that may say it; people have none. */
  #checkOwnership(eventType: string, { kind, vertical }: Caller): void {
    if (kind !== 'user' && vertical !== undefined && eventType[vertical.length] === ':' && eventType.startsWith(vertical)) return;
    throw this.#ctx.problem('event_ownership', {
      detail: `event_ownership: vertical '${kind === 'user' ? '' : (vertical ?? '')}' may not produce '${eventType}'`,
    });
  }

  #limited(): Error {
    const { produceRate, produceBurst } = this.#ctx.config;
    const headers = {
      'retry-after': '1',
      'RateLimit-Policy': `"produce";q=${produceBurst};w=${Math.max(1, Math.ceil(produceBurst / produceRate))}`,
      RateLimit: '"produce";r=0;t=1',
    };
    return this.#ctx.problem('rate_limited', { detail: `An environment takes ${produceRate} events per second.`, headers });
  }
}
