import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('platform');

/**
 * Runs `work` in a span named by operation (`sys.createOrg`), never by URL. Spans cost nothing until an operator loads an OpenTelemetry
 * SDK into the process (`NODE_OPTIONS=--import=…`): only the interface is here.
 */
export function traced<T>(name: string, attributes: Readonly<Record<string, string>>, work: () => Promise<T>): Promise<T> {
  return tracer.startActiveSpan(name, { kind: SpanKind.SERVER, attributes: { ...attributes } }, async span => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Trace id of the running span, for log lines; absent without an SDK. */
export function currentTraceId(): string | undefined {
  const id = trace.getActiveSpan()?.spanContext().traceId;
  return id === undefined || /^0+$/.test(id) ? undefined : id;
}
