import { createServer } from 'node:http';

/** Main of what the peers supervise: `small-server.mjs PORT` answers who it is, and finishes what it has when it is told to end. */
const server = createServer((_, response) => response.end(String(process.pid)));
server.listen(Number(process.argv[2]), '127.0.0.1');
for (const signal of ['SIGTERM', 'SIGINT'])
  process.once(signal, () => {
    server.close(() => process.exit(0));
    server.closeIdleConnections();
  });
