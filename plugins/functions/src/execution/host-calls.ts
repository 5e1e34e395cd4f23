import type { Execute } from '../../contract/schema.ts';
import type { FuncContext } from '../context.ts';
import { MAX_BYTES } from './sizes.ts';

export interface CallRecord {
  readonly name: string;
  readonly path: string;
  readonly status: number;
  readonly ms: number;
}
export interface CallTarget {
  readonly executionId: string;
  readonly envId: string;
  readonly service: string;
  readonly imports: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

const TIMEOUT_MS = 2_000;
const CALL_FUEL = 1_000;
const PATH = /^\/v1\/internal(?:\/[A-Za-z0-9_~:-][A-Za-z0-9._~:-]*)+$/;
/** Headers that a caller may add to the calls of its function: none that says who asks, or for whom. */
const HEADER = /^x-(?!platform-|bff-|forwarded-|content-)[a-z0-9-]{1,60}$/;

/**
 * Calls that functions make: posted by this service, to the internal paths of the service that owns the function, and nowhere else
 * (FUN-004, FUN-006).
 */
export class HostCalls {
  readonly #ctx: FuncContext;

  constructor(ctx: FuncContext) {
    this.#ctx = ctx;
  }

  /** What an execute request offers its function. Throws `callback_not_allowed` or `import_invalid`. */
  offer(
    { imports = {}, callback }: Pick<Execute, 'imports' | 'callback'>,
    domain: string,
  ): { service: string; imports: Record<string, string>; headers: Record<string, string> } {
    const service = callback?.service ?? domain;
    if (service !== domain)
      throw this.#ctx.problem('callback_not_allowed', { detail: `Functions of the domain ${domain} call the service ${domain} alone.` });
    for (const [name, path] of Object.entries(imports)) {
      if (!PATH.test(path))
        throw this.#ctx.problem('import_invalid', {
          detail: `The path of ${name} must begin with /v1/internal/ and have neither dots alone, a query nor an escape.`,
        });
    }
    const headers = Object.fromEntries(Object.entries(callback?.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
    for (const [name, value] of Object.entries(headers)) {
      if (!HEADER.test(name) || /[^\x20-\x7e]/.test(value))
        throw this.#ctx.problem('import_invalid', {
          detail: `The header ${name} cannot be added: names begin with x-, and those of the platform are its own.`,
        });
    }
    return { service, imports, headers };
  }

  /** Posts one call. Without a body in the answer the execution fails (FUN-015). */
  async make(
    target: CallTarget,
    { name, number, body, signal }: { name: string; number: number; body: Uint8Array; signal: AbortSignal },
  ): Promise<{ record: CallRecord; body?: Uint8Array; fuel: number }> {
    const path = Object.hasOwn(target.imports, name) ? target.imports[name] : undefined;
    const begun = performance.now();
    const record = (status: number): CallRecord => ({
      name,
      path: path ?? '',
      status,
      ms: Math.round((performance.now() - begun) * 10) / 10,
    });
    if (path === undefined) return { record: record(0), fuel: CALL_FUEL };
    try {
      const { status, bytes } = await this.#ctx.actions.callBack({
        service: target.service,
        path,
        body,
        envId: target.envId,
        idempotencyKey: `${target.executionId}:${number}`,
        headers: target.headers,
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_BYTES,
        signal,
      });
      if (status < 200 || status > 299 || !bytes) return { record: record(status), fuel: CALL_FUEL };
      return { record: record(status), body: bytes, fuel: CALL_FUEL + ((body.length + bytes.length) >> 4) };
    } catch (err) {
      this.#ctx.log.info({ service: target.service, path, err }, 'a call of a function failed');
      return { record: record(0), fuel: CALL_FUEL };
    }
  }
}
