/** The files that make an embedded cluster ours. Kept as text: this is what an administrator would look for. */
export interface PostgresConfig {
  readonly port: number;
  readonly socketDirectory: string;
  /** Operating-system names that are the administrator over the local socket. */
  readonly administrators: readonly string[];
}

/** Administrator over the private socket, services by certificate over TLS, nobody else at all. */
export const HBA = `local   all       postgres                       peer map=admin
hostssl platform  /^platform_[a-z0-9]+$  127.0.0.1/32  cert map=service
local   all       all                            reject
host    all       all                 all        reject
`;

export function ident({ administrators }: PostgresConfig): string {
  return `${administrators.map(name => `admin    "${name}"  postgres\n`).join('')}service  /^svc\\.([a-z0-9]+)$  platform_\\1\n`;
}

/** Read after the file initdb wrote, so what it measured on this machine (shared memory) stands. */
export function settings({ port, socketDirectory }: PostgresConfig): string {
  return `listen_addresses = '127.0.0.1'
port = ${port}
unix_socket_directories = '${socketDirectory.replaceAll("'", "''")}'
unix_socket_permissions = 0700
ssl = on
ssl_ca_file = 'tls/ca.crt'
ssl_cert_file = 'tls/server.crt'
ssl_key_file = 'tls/server.key'
ssl_min_protocol_version = 'TLSv1.3'
authentication_timeout = 10s
client_connection_check_interval = 10s
tcp_keepalives_idle = 60

max_connections = 200
shared_buffers = 64MB
work_mem = 4MB
maintenance_work_mem = 32MB
max_wal_size = 512MB
huge_pages = off
jit = off
io_method = sync
max_parallel_workers_per_gather = 0
max_logical_replication_workers = 0
timezone = 'UTC'
log_timezone = 'UTC'

# An acknowledged write is on the disk.
fsync = on
synchronous_commit = on
full_page_writes = on

# Statements and their details carry tenants' data: neither is logged.
log_min_messages = log
log_min_error_statement = panic
log_error_verbosity = terse
log_checkpoints = off
log_startup_progress_interval = 0
logging_collector = off
`;
}
