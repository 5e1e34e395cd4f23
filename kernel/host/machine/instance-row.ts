import type { Manifest } from '../../base/manifest.ts';
import type { Instance } from '../../routing/directory.ts';
import { type Bootstrap, LOOPBACK } from '../boot/bootstrap.ts';

/**
 * A service of this process as the instance registry shows it (G-CAP-01). One that is supervised has no work before somebody has seen it
 * healthy.
 */
export function instanceRow(
  manifest: Manifest,
  { ip = LOOPBACK, port, build, supervised = false }: Pick<Bootstrap, 'ip' | 'build' | 'supervised'> & { readonly port: number },
  log_path: string,
): Instance {
  return {
    service_type: manifest.id,
    ip,
    port,
    pid: process.pid,
    status: supervised ? 'Starting' : 'Active',
    version: `${manifest.version}.${build}`,
    metrics: { cpu_pct: 0, mem_mb: Math.round(process.memoryUsage.rss() / 1_048_576), latency_ms: 0, active_connections: 0 },
    restarts: 0,
    api_calls: 0,
    started_at: new Date().toISOString(),
    last_health_at: new Date().toISOString(),
    failures: 0,
    log_path,
  };
}
