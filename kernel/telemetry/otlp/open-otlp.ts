import type { Logger } from '@platform/sdk';
import type { Clock } from '../../base/clock.ts';
import type { OtlpExporter } from './otlp-exporter.ts';

/** Sends telemetry where the standard variables of OpenTelemetry say; nothing is loaded, and nothing costs, while they say nothing. */
export async function openOtlp(
  environment: Readonly<Record<string, string | undefined>>,
  { process: name, build, log, clock }: { process: string; build: string; log: Logger; clock: Clock },
): Promise<(OtlpExporter & AsyncDisposable) | undefined> {
  const endpoint = environment['OTEL_EXPORTER_OTLP_ENDPOINT'];
  if (!endpoint) return undefined;
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol))
    throw new Error(`OTEL_EXPORTER_OTLP_ENDPOINT is no http or https URL: set it to one such as http://127.0.0.1:4318`);
  const [{ OtlpExporter }, { registerTracer }, { Agent }] = await Promise.all([
    import('./otlp-exporter.ts'),
    import('./otlp-tracer.ts'),
    import('undici'),
  ]);
  const resource = { 'service.name': 'platform', 'service.version': build, 'service.instance.id': name };
  const exporter = new OtlpExporter(
    { endpoint, headers: headersIn(environment['OTEL_EXPORTER_OTLP_HEADERS'] ?? ''), resource, log, clock },
    new Agent({ connections: 1, connectTimeout: 5_000 }),
  );
  const registered = registerTracer(exporter);
  const end = exporter[Symbol.asyncDispose].bind(exporter);
  return Object.assign(exporter, {
    [Symbol.asyncDispose]: async () => {
      registered[Symbol.dispose]();
      await end();
    },
  });
}

/** `key=value,key=value`, values percent-encoded (OpenTelemetry, environment variables). */
const headersIn = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .split(',')
      .filter(pair => pair.includes('='))
      .map(pair => [pair.slice(0, pair.indexOf('=')).trim().toLowerCase(), decodeURIComponent(pair.slice(pair.indexOf('=') + 1).trim())]),
  );
