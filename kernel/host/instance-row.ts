import type { Manifest } from '../base/manifest.ts';
import type { Instance } from '../routing/directory.ts';

/** A service of this process as the instance registry shows it (G-CAP-01). */
export function instanceRow(manifest: Manifest, port: number, build: string, log_path: string): Instance {
  return {
    service_type: manifest.id,
    ip: '127.0.0.1',
    port,
    pid: process.pid,
    status: 'Active',
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
