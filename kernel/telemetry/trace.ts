import { context, isSpanContextValid, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('platform');

/**
 * Runs `work` in a span named by operation (`sys.createOrg`), never by URL. Spans cost nothing until an operator loads an OpenTelemetry
 * SDK into the process (`NODE_OPTIONS=--import=…`): only the interface is here.
 */
export function traced<T>(name: string, attributes: Readonly<Record<string, string>>, work: () => Promise<T>): Promise<T> {
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes });
  // Nobody listens: what follows would only copy an empty context.
  if (!isSpanContextValid(span.spanContext())) return work();
  return context.with(trace.setSpan(context.active(), span), async () => {
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
