import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyValue, Logger } from '@platform/sdk';

export const ENROLLMENT_HEADER = 'x-platform-bootstrap-enrollment';
/** A workload needs three certificates and a retry of each; more uses of one secret want a look. */
const EXPECTED_USES = 8;
const USES_S = 300;

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
    const record = (await this.#kv.call('GET', `captain:enrollment:${ip}:${workload}`)) as string | null;
    const expected = record ? (JSON.parse(record) as { sha256: string; workload: string }) : undefined;
    const given = createHash('sha256').update(secret).digest();
    const wanted = expected ? Buffer.from(expected.sha256, 'hex') : Buffer.alloc(32);
    const admitted = timingSafeEqual(given, wanted) && expected?.workload === workload;
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
