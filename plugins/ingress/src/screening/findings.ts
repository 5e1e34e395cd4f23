import type { Mapping } from '../host-mappings.ts';
import type { Finding } from './screen.ts';

/** What screening found in a request, for operators; its text is cut and without secrets. */
export interface RecordedFinding extends Finding {
  readonly finding_id: string;
  readonly at: string;
  readonly hostname: string;
  readonly env_id: string | null;
  readonly ip: string;
  readonly method: string;
  readonly outcome: 'blocked' | 'passed';
  readonly correlation_id: string;
}

const MOST = 500;

/** The latest findings, in memory alone (ING-005), and how many there were. */
export class Findings {
  readonly #latest: RecordedFinding[] = [];
  readonly #counts = { waf_blocked_total: 0, waf_detected_total: 0 };

  get figures(): Readonly<Record<string, number>> {
    return { ...this.#counts };
  }

  add(
    finding: Finding,
    { hostname, env_id }: Mapping,
    request: Pick<RecordedFinding, 'finding_id' | 'at' | 'ip' | 'method' | 'outcome' | 'correlation_id'>,
  ): void {
    this.#counts[request.outcome === 'blocked' ? 'waf_blocked_total' : 'waf_detected_total'] += 1;
    this.#latest.unshift({ ...finding, hostname, env_id, ...request });
    if (this.#latest.length > MOST) this.#latest.length = MOST;
  }

  /** Newest first. */
  latest(): readonly RecordedFinding[] {
    return this.#latest;
  }
}
