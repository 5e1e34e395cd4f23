import { type Context, context, isSpanContextValid, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';

const tracer = trace.getTracer('platform');

/**
 * Runs `work` in a span named by operation (`sys.createOrg`), never by URL. Spans cost nothing until `OTEL_EXPORTER_OTLP_ENDPOINT` says
 * where they go. `parent` is the caller's `traceparent` (W3C Trace Context): a request keeps its trace from service to service.
 */
export function traced<T>(name: string, attributes: Readonly<Record<string, string>>, work: () => Promise<T>, parent?: string): Promise<T> {
  const within = parent === undefined ? context.active() : contextOf(parent);
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, within);
  // Nobody listens: what follows would only copy an empty context.
  if (!isSpanContextValid(span.spanContext())) return work();
  return context.with(trace.setSpan(within, span), async () => {
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

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** What a caller says of its own span; anything that is not well formed begins a trace of its own. */
function contextOf(traceparent: string): Context {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
  const parent = { traceId: traceId ?? '', spanId: spanId ?? '', traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true };
  return isSpanContextValid(parent) ? trace.setSpanContext(ROOT_CONTEXT, parent) : context.active();
}

/** The header that hands the running span on to another service; nothing where spans go nowhere. */
export function traceHeaders(): { traceparent?: string } {
  const span = trace.getActiveSpan()?.spanContext();
  return span && isSpanContextValid(span)
    ? { traceparent: `00-${span.traceId}-${span.spanId}-${span.traceFlags.toString(16).padStart(2, '0')}` }
    : {};
}

/** Trace id of the running span, for log lines; absent without an SDK. */
export function currentTraceId(): string | undefined {
  const id = trace.getActiveSpan()?.spanContext().traceId;
  return id === undefined || /^0+$/.test(id) ? undefined : id;
}
