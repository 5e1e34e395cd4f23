import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context as contextApi,
  type Exception,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { attributesOf, type OtlpExporter } from './otlp-exporter.ts';

/** Kinds of OTLP begin at one with what the interface calls zero. */
const KINDS: Readonly<Record<SpanKind, number>> = {
  [SpanKind.INTERNAL]: 1,
  [SpanKind.SERVER]: 2,
  [SpanKind.CLIENT]: 3,
  [SpanKind.PRODUCER]: 4,
  [SpanKind.CONSUMER]: 5,
};

/** Makes this process's spans real, and hands each to the exporter when it ends. Undone by disposing. */
export function registerTracer(exporter: OtlpExporter): Disposable {
  contextApi.setGlobalContextManager(new Contexts().enable());
  trace.setGlobalTracerProvider(new Provider(exporter));
  return {
    [Symbol.dispose]: () => {
      trace.disable();
      contextApi.disable();
    },
  };
}

class Provider implements TracerProvider {
  readonly #tracer: Tracer;
  constructor(exporter: OtlpExporter) {
    this.#tracer = new OtlpTracer(exporter);
  }
  getTracer(): Tracer {
    return this.#tracer;
  }
}

class OtlpTracer implements Tracer {
  readonly #exporter: OtlpExporter;
  constructor(exporter: OtlpExporter) {
    this.#exporter = exporter;
  }

  startSpan(name: string, options: SpanOptions = {}, within: Context = contextApi.active()): Span {
    return new OtlpSpan(name, options, options.root ? undefined : trace.getSpanContext(within), this.#exporter);
  }

  startActiveSpan<F extends (span: Span) => unknown>(name: string, ...rest: unknown[]): ReturnType<F> {
    const work = rest.at(-1) as F;
    const [options, within] = rest.length > 1 ? (rest as [SpanOptions, Context | F]) : [{}, undefined];
    const parent = typeof within === 'object' ? within : contextApi.active();
    const span = this.startSpan(name, options as SpanOptions, parent);
    return contextApi.with(trace.setSpan(parent, span), () => work(span)) as ReturnType<F>;
  }
}

class OtlpSpan implements Span {
  readonly #context: SpanContext;
  readonly #parent: string | undefined;
  readonly #kind: number;
  readonly #startedAt = unixNano();
  readonly #exporter: OtlpExporter;
  readonly #attributes: Attributes;
  readonly #events: object[] = [];
  #name: string;
  #status: SpanStatus = { code: SpanStatusCode.UNSET };
  #ended = false;

  constructor(
    name: string,
    { kind = SpanKind.INTERNAL, attributes = {} }: SpanOptions,
    parent: SpanContext | undefined,
    exporter: OtlpExporter,
  ) {
    this.#name = name;
    this.#kind = KINDS[kind];
    this.#attributes = { ...attributes };
    this.#exporter = exporter;
    this.#parent = parent?.spanId;
    this.#context = {
      traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
      spanId: randomBytes(8).toString('hex'),
      traceFlags: TraceFlags.SAMPLED,
    };
  }

  spanContext(): SpanContext {
    return this.#context;
  }
  setAttribute(key: string, value: Attributes[string]): this {
    if (value !== undefined) this.#attributes[key] = value;
    return this;
  }
  setAttributes(attributes: Attributes): this {
    Object.assign(this.#attributes, attributes);
    return this;
  }
  addEvent(name: string, attributes: unknown = {}): this {
    this.#events.push({ name, timeUnixNano: unixNano(), attributes: attributesOf(attributes as Record<string, unknown>) });
    return this;
  }
  addLink(): this {
    return this;
  }
  addLinks(): this {
    return this;
  }
  setStatus(status: SpanStatus): this {
    this.#status = status;
    return this;
  }
  updateName(name: string): this {
    this.#name = name;
    return this;
  }
  /** The kind of a failure alone: its words may carry what leaves no process. */
  recordException(exception: Exception): void {
    this.addEvent('exception', {
      'exception.type': typeof exception === 'object' ? String(exception.name ?? exception.code ?? 'Error') : 'Error',
    });
  }
  isRecording(): boolean {
    return !this.#ended;
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const { traceId, spanId } = this.#context;
    this.#exporter.take({
      traceId,
      spanId,
      ...(this.#parent ? { parentSpanId: this.#parent } : {}),
      name: this.#name,
      kind: this.#kind,
      startTimeUnixNano: this.#startedAt,
      endTimeUnixNano: unixNano(),
      attributes: attributesOf(this.#attributes),
      events: this.#events,
      status: { code: this.#status.code },
    });
  }
}

/** The context of a request, wherever its work goes on. */
class Contexts implements ContextManager {
  readonly #storage = new AsyncLocalStorage<Context>();
  active(): Context {
    return this.#storage.getStore() ?? ROOT_CONTEXT;
  }
  with<A extends unknown[], F extends (...args: A) => ReturnType<F>>(
    context: Context,
    work: F,
    self?: ThisParameterType<F>,
    ...args: A
  ): ReturnType<F> {
    return this.#storage.run(context, () => work.call(self, ...args));
  }
  bind<T>(context: Context, target: T): T {
    return typeof target === 'function'
      ? (((...args: unknown[]) =>
          this.#storage.run(context, () => (target as unknown as (...all: unknown[]) => unknown)(...args))) as unknown as T)
      : target;
  }
  enable(): this {
    return this;
  }
  disable(): this {
    this.#storage.disable();
    return this;
  }
}

const unixNano = (): string => String(BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n);
