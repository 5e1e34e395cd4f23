import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyValue, Logger } from '@platform/sdk';

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

/** The bootstrap secret of one workload on one machine, checked against the live fleet record (H-03). */
export class Enrollment {
  readonly #kv: KeyValue;
  readonly #log: Logger;

  constructor(kv: KeyValue, log: Logger) {
    this.#kv = kv;
    this.#log = log;
  }

  /** Whether `secret` was made for `workload` on the machine at `ip`. Constant time; every use is logged. */
  async admits(secret: string, workload: string, ip: string): Promise<boolean> {
    const [own, machine] = (await Promise.all([this.#kv.call('GET', `captain:enrollment:${ip}:${workload}`), this.#kv.call('GET', `captain:enrollment:${ip}`)])) as (string | null)[];
    const given = createHash('sha256').update(secret).digest();
    // A machine's own secret stands for the services that its record names, at its address, and for nothing else.
    const ofWorkload = matches(own, given, record => record.workload === workload);
    const ofMachine = matches(machine, given, record => record.ip === ip && (record.services?.includes(workload.split('-')[0] as string) ?? false));
    const admitted = ofWorkload || ofMachine;
    this.#log[admitted ? 'info' : 'warn']({ channel: 'enrollment', service_name: workload, peer: ip, admitted }, 'enrollment secret used');
    if (admitted) await this.#count(workload, ip);
    return admitted;
  }

  async #count(workload: string, ip: string): Promise<void> {
    const key = `captain:enrollment:uses:${ip}:${workload}`;
    const [uses] = await this.#kv.pipeline([
      ['INCR', key],
      ['EXPIRE', key, USES_S],
    ]);
    if (Number(uses) > EXPECTED_USES)
      this.#log.error({ alert: 'acme.enrollment.overused', service_name: workload, peer: ip, uses: Number(uses) }, 'enrollment secret used more often than a start needs');
  }
}
