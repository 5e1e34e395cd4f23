/** What the gateway promises about itself, in Prometheus' text form (G-BFF-10). */
export function gauges(build: string): string {
  return [
    'bff_up 1',
    `bff_build_info{build="${build.replaceAll(/[^A-Za-z0-9._-]/g, '')}"} 1`,
    'bff_session_scan_max 1000',
    'bff_subscription_buffer 256',
    'bff_chat_buffer 64',
    '',
  ].join('\n');
}
