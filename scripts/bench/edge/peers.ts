import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@platform/kernel/storage/free-port';
import type { BackendPorts } from './backend-process.ts';

/** A server that does the ingress's work, as Debian packs it. */
export interface Peer {
  readonly name: string;
  readonly version: string;
  /** The key exchange it does with a client that offers both. */
  readonly group: 'X25519MLKEM768' | 'X25519';
  readonly process: ChildProcess;
  readonly port: number;
  /** Where it passes bytes on as they are. */
  readonly bare?: number;
}
export interface PeerOrder {
  readonly home: string;
  readonly cert: string;
  readonly key: string;
  readonly backend: BackendPorts;
}

/** What the ingress injects, at the same length. */
const INJECTED = {
  'X-Platform-Env-Id': '018f0000-0000-7000-8000-0000000000e1',
  'X-Platform-Service': 'echo',
  'X-Platform-Hostname': 'echo.ops.sys.localhost',
  'X-Platform-Caller-Service': 'proxy',
  'X-Forwarded-Proto': 'https',
};
const DEBIAN = '/usr/sbin:/usr/bin:/sbin:/bin';
const environment = { ...process.env, PATH: `${process.env['PATH']}:${DEBIAN}` };
const told = (program: string, option: string): string | undefined => {
  const { error, stdout, stderr } = spawnSync(program, [option], { env: environment, encoding: 'utf8' });
  return error ? undefined : `${stdout}${stderr}`;
};
const groupOf = (about: string): Peer['group'] =>
  /OpenSSL 3\.([5-9]|\d\d)|OpenSSL [4-9]/.test(/running with ([^)]+)|Running on OpenSSL version : (.+)/i.exec(about)?.[0] ?? about)
    ? 'X25519MLKEM768'
    : 'X25519';

/** nginx with one worker; `undefined` where it is not installed. */
export async function nginx({ home, cert, key, backend }: PeerOrder): Promise<Peer | undefined> {
  const about = told('nginx', '-V');
  if (about === undefined) return undefined;
  const [port, folder] = [await freePort(), join(home, 'nginx')];
  mkdirSync(folder);
  for (const [name, text] of Object.entries({ cert, key })) writeFileSync(join(folder, name), text, { mode: 0o600 });
  const headers = Object.entries(INJECTED).map(([name, value]) => `proxy_set_header ${name} "${value}";`);
  writeFileSync(
    join(folder, 'nginx.conf'),
    `user root; daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 100000000; keepalive_timeout 600;
  client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f;
  uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream backend { server 127.0.0.1:${backend.tls}; keepalive 64; keepalive_requests 100000000; keepalive_timeout 600; }
  server {
    listen 127.0.0.1:${port} ssl; ssl_protocols TLSv1.3; ssl_certificate ${folder}/cert; ssl_certificate_key ${folder}/key;
    location / {
      proxy_pass https://backend; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_ssl_protocols TLSv1.3;
      ${headers.join(' ')} proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Platform-Correlation-Id $request_id;
    }
  }
}
`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { env: environment, stdio: 'ignore' });
  await answering(child, port);
  return { name: 'nginx', version: /nginx\/([\d.]+)/.exec(about)?.[1] ?? '', group: groupOf(about), process: child, port };
}

/** haproxy with one thread, ending TLS on one port and passing bytes on another; `undefined` where it is not installed. */
export async function haproxy({ home, cert, key, backend }: PeerOrder): Promise<Peer | undefined> {
  const about = told('haproxy', '-vv');
  if (about === undefined) return undefined;
  const [port, bare, folder] = [await freePort(), await freePort(), join(home, 'haproxy')];
  mkdirSync(folder);
  writeFileSync(join(folder, 'pem'), `${cert}\n${key}`, { mode: 0o600 });
  const headers = Object.entries(INJECTED).map(([name, value]) => `  http-request set-header ${name} ${value}`);
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `global
  nbthread 1
  maxconn 4096
  ssl-default-bind-options ssl-min-ver TLSv1.3
defaults
  timeout connect 2s
  timeout client 600s
  timeout server 600s
frontend edge
  mode http
  bind 127.0.0.1:${port} ssl crt ${folder}/pem alpn http/1.1
${headers.join('\n')}
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header X-Platform-Correlation-Id %[uuid()]
  default_backend echo
backend echo
  mode http
  http-reuse always
  server one 127.0.0.1:${backend.tls} ssl verify none ssl-min-ver TLSv1.3
listen bare
  mode tcp
  bind 127.0.0.1:${bare}
  server one 127.0.0.1:${backend.bare}
`,
  );
  const child = spawn('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], { env: environment, stdio: 'ignore' });
  await answering(child, port);
  return {
    name: 'haproxy',
    version: /version ([\d.]+)/.exec(about)?.[1] ?? '',
    group: groupOf(about),
    process: child,
    port,
    bare,
  };
}

async function answering(child: ChildProcess, port: number): Promise<void> {
  for (let turn = 0; turn < 100; turn++) {
    if (child.exitCode !== null) throw new Error(`${child.spawnfile} ended with ${child.exitCode}`);
    const open = await new Promise<boolean>(resolve => {
      const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true))).on('error', () => resolve(false));
    });
    if (open) return;
    await delay(50);
  }
  throw new Error(`${child.spawnfile} does not answer`);
}
