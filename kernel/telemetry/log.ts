import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from '@platform/sdk';
import pino from 'pino';
import { currentScope } from './request-scope.ts';
import { currentTraceId } from './trace.ts';

/** Header and member names whose values never reach a log, whatever the nesting. */
const SECRET = [
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'token',
  'ticket',
  'secret',
  'client_secret',
  'access_token',
  'refresh_token',
  'id_token',
  'csrf_token',
  'code_verifier',
  'key_pem',
  'private_key',
  'x-platform-bootstrap-enrollment',
];
const redact = {
  paths: SECRET.flatMap(name => (name.includes('-') ? [`["${name}"]`, `*["${name}"]`] : [name, `*.${name}`])),
  censor: '[redacted]',
};

export interface LogOptions {
  readonly level: string;
  readonly directory: string;
  readonly build: string;
  /** Human-readable lines on stderr instead of JSON. */
  readonly pretty: boolean;
  readonly process: string;
}

export interface Telemetry {
  logger(service: string): Logger;
  flush(): void;
}

/** JSON lines in `directory`, and on stderr JSON or short text; every line carries service, build and the request's ids (house 18). */
export function openLog(options: LogOptions): Telemetry {
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const file = pino.destination({ dest: join(options.directory, `${options.process}.log`), mkdir: true, sync: false, minLength: 4096 });
  const stderr = options.pretty ? { write: prettyLine } : pino.destination({ dest: 2, sync: true });
  const root = pino(
    {
      level: options.level,
      base: { build: options.build },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      redact,
      mixin: () => {
        const scope = currentScope();
        const traceId = currentTraceId();
        return {
          ...(scope ? { correlation_id: scope.correlationId } : {}),
          ...(scope?.envId ? { env_id: scope.envId } : {}),
          ...(traceId ? { trace_id: traceId } : {}),
        };
      },
    },
    pino.multistream([
      { stream: file, level: options.level as pino.Level },
      { stream: stderr, level: options.pretty ? 'warn' : (options.level as pino.Level) },
    ]),
  );
  const timer = setInterval(() => file.flush(), 1000);
  timer.unref();
  return {
    logger: service => {
      const child = root.child({ service });
      return {
        debug: (fields, message) => child.debug(fields, message),
        info: (fields, message) => child.info(fields, message),
        warn: (fields, message) => child.warn(fields, message),
        error: (fields, message) => child.error(fields, message),
      };
    },
    flush: () => {
      clearInterval(timer);
      try {
        file.flushSync();
      } catch {
        // The file may not be open yet when a start fails at once; there is nothing to flush then.
      }
    },
  };
}

function prettyLine(line: string): void {
  const { level, time, service, msg, build: _build, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const cause = err as { message?: string; stack?: string } | undefined;
  const rest = Object.keys(fields).length ? ` ${JSON.stringify(fields)}` : '';
  process.stderr.write(
    `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${String(service)}: ${String(msg)}${rest}${
      cause ? ` — ${cause.stack ?? cause.message}` : ''
    }\n`,
  );
}
