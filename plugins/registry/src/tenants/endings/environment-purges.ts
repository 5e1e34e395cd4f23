import type { TaskRun } from '@platform/sdk';
import type { Ctx, RegistryTx } from '../../context.ts';
import type { Verticals } from '../../verticals/verticals.ts';

const COUNT_MS = 2_000;
const PURGE_MS = 50_000;
const MAX_BYTES = 65_536;
/** So many environments are counted in a preview; the largest organizations see their names instead. */
const MOST_COUNTED = 100;

export interface Held {
  readonly service: string;
  readonly label: string;
  readonly counts?: Record<string, number>;
}

/** What services hold of environments: counted before a delete is confirmed, deleted after it, by each service that says it can (H-32). */
export class EnvironmentPurges {
  readonly #ctx: Ctx;
  readonly #verticals: Verticals;

  constructor(ctx: Ctx, verticals: Verticals) {
    this.#ctx = ctx;
    this.#verticals = verticals;
  }

  /** One task for each service, in the transaction of the delete; *Work* shows who has not answered. */
  async ask(tx: RegistryTx, envIds: readonly string[]): Promise<void> {
    for (const { service } of await this.#verticals.purging()) {
      for (const env_id of envIds) await tx.enqueue('purgeEnvironment', { env_id, service }, { key: `${env_id}/${service}` });
    }
  }

  async purge({ env_id, service }: { env_id: string; service: string }, { signal }: TaskRun): Promise<void> {
    // A service that was unregistered has nobody left to ask.
    if (!(await this.#verticals.purging()).some(known => known.service === service)) return;
    const counts = await this.#post(service, 'purge', [env_id], PURGE_MS, signal);
    this.#ctx.log.info({ env_id, service_asked: service, ...counts }, 'a service deleted what it held of a deleted environment');
  }

  /** Services that do not answer in time are named without counts. */
  async counts(envIds: readonly string[]): Promise<Held[]> {
    if (envIds.length === 0 || envIds.length > MOST_COUNTED) return [];
    const held = await Promise.all(
      (await this.#verticals.purging()).map(async ({ service, label }): Promise<Held> => {
        try {
          return { service, label, counts: await this.#post(service, 'counts', envIds, COUNT_MS) };
        } catch (error) {
          this.#ctx.log.warn({ err: error, service_asked: service }, 'a service did not say what it holds of environments');
          return { service, label };
        }
      }),
    );
    return held.filter(({ counts }) => counts === undefined || Object.keys(counts).length > 0);
  }

  async #post(
    service: string,
    what: 'counts' | 'purge',
    envIds: readonly string[],
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Record<string, number>> {
    const { status, bytes } = await this.#ctx.actions.callBack({
      service,
      path: `/v1/internal/environments/${what}`,
      body: { env_ids: envIds },
      timeoutMs,
      maxBytes: MAX_BYTES,
      ...(signal ? { signal } : {}),
    });
    if (status !== 200) throw new Error(`${service} answered ${status}`);
    if (!bytes) throw new Error(`${service} answered with more than ${MAX_BYTES} bytes`);
    return (JSON.parse(Buffer.from(bytes).toString('utf8')) as { counts: Record<string, number> }).counts;
  }
}
