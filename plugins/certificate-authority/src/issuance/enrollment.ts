import { createHash, timingSafeEqual } from 'node:crypto';
import { sealedEnrollment, FLEET_KEYS } from '@platform/sdk';
import type { Ctx } from '../context.ts';

export const ENROLLMENT_HEADER = 'x-platform-bootstrap-enrollment';
/** A workload needs three certificates and a retry of each; more uses of one secret want a look. */
const EXPECTED_USES = 8;
const USES_S = 300;

interface EnrollmentRecord {
  readonly sha256: string;
  readonly workload?: string;
  readonly ip?: string;
  readonly services?: readonly string[];
}

/** In the same time whether there is a record or none. */
function matches(text: string | null | undefined, given: Buffer, fits: (record: EnrollmentRecord) => boolean): boolean {
  const record = typeof text === 'string' ? (JSON.parse(text) as EnrollmentRecord) : undefined;
  const wanted = record ? Buffer.from(record.sha256, 'hex') : Buffer.alloc(32);
  return wanted.length === given.length && timingSafeEqual(given, wanted) && record !== undefined && fits(record);
}

/**
 * The bootstrap secret of one workload on one machine, checked against what this machine sealed and the live records of the fleet (H-03).
 */
export class Enrollment {
  readonly #ctx: Ctx;

  constructor(ctx: Ctx) {
    this.#ctx = ctx;
  }

  /** Whether `secret` was made for `workload` on the machine at `ip`. Constant time; every use is logged. */
  async admits(secret: string, workload: string, ip: string): Promise<boolean> {
    const given = createHash('sha256').update(secret).digest();
    // The file of this machine first: it needs no store, which may be what is being started (CA-044).
    const by = this.#isOfThisMachine(given, workload, ip) ? 'file' : (await this.#isOfFleet(given, workload, ip)) ? 'record' : undefined;
    const { log } = this.#ctx;
    log[by ? 'info' : 'warn'](
      { channel: 'enrollment', service_name: workload, peer: ip, admitted: by !== undefined, by },
      'enrollment secret used',
    );
    if (by)
      await this.#count(workload, ip).catch(error =>
        log.warn({ err: error, service_name: workload }, 'the use of an enrollment secret could not be counted'),
      );
    return by !== undefined;
  }

  #isOfThisMachine(given: Buffer, workload: string, ip: string): boolean {
    const { platform, clock } = this.#ctx;
    const sealed = sealedEnrollment(platform.dataDir, clock.now().getTime());
    // Compared also when there is none, so that the time tells nothing. The secret is sent in base64url, as it is handed out.
    const wanted = sealed ? createHash('sha256').update(sealed.secret.toString('base64url')).digest() : Buffer.alloc(32);
    return timingSafeEqual(given, wanted) && sealed !== undefined && ip === platform.ip && this.#isPlatform(workload);
  }

  /** The machine's secret starts services of the platform: those of others are given secrets of their own. */
  #isPlatform(workload: string): boolean {
    const service = workload.split('-')[0];
    return this.#ctx.catalog.manifests().some(({ id, vertical }) => id === service && vertical === 'platform');
  }

  async #isOfFleet(given: Buffer, workload: string, ip: string): Promise<boolean> {
    const { kv } = this.#ctx;
    const [own, machine] = (await Promise.all([
      kv.call('GET', FLEET_KEYS.enrollment(ip, workload)),
      kv.call('GET', FLEET_KEYS.enrollment(ip)),
    ])) as (string | null)[];
    // A machine's own secret stands for the services that its record names, at its address, and for nothing else.
    const ofWorkload = matches(own, given, record => record.workload === workload);
    const ofMachine = matches(
      machine,
      given,
      record => record.ip === ip && (record.services?.includes(workload.split('-')[0] as string) ?? false),
    );
    return ofWorkload || ofMachine;
  }

  async #count(workload: string, ip: string): Promise<void> {
    const key = FLEET_KEYS.enrollmentUses(ip, workload);
    const [uses] = await this.#ctx.kv.pipeline([
      ['INCR', key],
      ['EXPIRE', key, USES_S],
    ]);
    if (Number(uses) > EXPECTED_USES)
      this.#ctx.log.error(
        { alert: 'acme.enrollment.overused', service_name: workload, peer: ip, uses: Number(uses) },
        'enrollment secret used more often than a start needs',
      );
  }
}
