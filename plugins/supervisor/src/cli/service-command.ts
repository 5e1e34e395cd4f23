import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fleetCommand } from './fleet-command.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const UNIT = '/etc/systemd/system/platform.service';
const ENVIRONMENT = '/etc/platform/environment';

export interface UnitOptions {
  readonly root: string;
  readonly node: string;
  readonly flags: readonly string[];
  readonly user: string;
  readonly dataDir: string;
  readonly distribution: string;
}

export default {
  ...fleetCommand(
    `platform service install [--user NAME] [--data DIR] [--distribution NAME] [--dry-run] [--json]

  Writes ${UNIT}, which starts the platform with this server and again when it dies, and tells systemd of it.
  Settings go into ${ENVIRONMENT}, which is made with mode 0600 when it is not there.
  --dry-run prints what it would write, and changes nothing.`,
    { user: { type: 'string' }, data: { type: 'string' }, distribution: { type: 'string' }, 'dry-run': { type: 'boolean' } },
    [1, 1],
    async ({ words, options }) => {
      if (words[0] !== 'install') throw new Error('There is `platform service install`.');
      const text = (name: string, fallback: string) => (options[name] as string | undefined) ?? fallback;
      const unit = unitOf({
        root: ROOT,
        node: process.execPath,
        flags: process.execArgv,
        user: text('user', 'platform'),
        dataDir: resolve(text('data', '/var/lib/platform')),
        distribution: text('distribution', 'single-host'),
      });
      if (options['dry-run'] === true) return { value: { path: UNIT, unit }, lines: [`would write ${UNIT}:`, '', ...unit.split('\n')] };
      return { value: { path: UNIT }, lines: install(unit) };
    },
  ),
  offline: true,
};

/** The unit. Only the supervisor is stopped and started by systemd: what it watches over outlives it, and is taken over by the next one. */
export function unitOf({ root, node, flags, user, dataDir, distribution }: UnitOptions): string {
  const words = [node, ...flags, `${root}kernel/main.ts`, 'run', '--distribution', distribution].map(quoted);
  return `[Unit]
Description=Platform
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
User=${user}
WorkingDirectory=${root}
Environment=PLATFORM_ENV=production PLATFORM_DATA_DIR=${dataDir} NODE_ENV=production
EnvironmentFile=-${ENVIRONMENT}
ExecStart=${words.join(' ')}
Restart=always
RestartSec=2
KillMode=process
TimeoutStopSec=180
LimitNOFILE=65536
UMask=0077
NoNewPrivileges=yes
AmbientCapabilities=CAP_NET_BIND_SERVICE
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths=${dataDir}
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
`;
}

function install(unit: string): string[] {
  const lines = [`wrote ${UNIT}`];
  writeFileSync(UNIT, unit, { mode: 0o644 });
  if (!existsSync(ENVIRONMENT)) {
    mkdirSync(dirname(ENVIRONMENT), { recursive: true, mode: 0o755 });
    writeFileSync(ENVIRONMENT, '# Settings of the platform, NAME=value; `npm run platform -- config` lists them.\n', { mode: 0o600 });
    lines.push(`wrote ${ENVIRONMENT}`);
  }
  try {
    execFileSync('systemctl', ['daemon-reload'], { stdio: 'ignore' });
    lines.push('Start it with: systemctl enable --now platform');
  } catch {
    lines.push('systemctl could not be called: tell systemd by `systemctl daemon-reload`, then `systemctl enable --now platform`');
  }
  return lines;
}

/** A word as systemd reads it: a per cent sign begins a specifier, a dollar sign a variable. */
const quoted = (word: string): string =>
  /^[\w/.:=@+-]+$/.test(word)
    ? word
    : `"${word.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
