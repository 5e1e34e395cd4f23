import { pageDefinition } from '@platform/kernel/http/pages/page-definition';
import { expect, test } from 'vitest';
import type { ConformanceSubject } from './conformance-subject.ts';

/** What every service must do from its start to its end. */
export function lifePromises(subject: ConformanceSubject): void {
  const { base } = subject.contract;

  test('health reports the build, readiness every check, and pages resolve with columns of real rows', async () => {
    await subject.use(async host => {
      const health = await host.fetch('/v1/health');
      expect(health.json).toMatchObject({ service: base.id, build: 'test' });
      const readiness = await host.fetch('/v1/readiness');
      expect([readiness.status, readiness.json['status']]).toEqual([200, 'ready']);
      for (const name of Object.keys(host.manifest.pages))
        expect(pageDefinition(host.manifest, name)).toMatchObject({ schema: 'platform.admin-ui/1', page: name });
    });
  });

  test('migrations run a second time and change nothing', async () => {
    await subject.use(async host => {
      await host.process.instances.get(base.id)?.migrate();
    });
  });

  test('draining refuses new work with 503 and Retry-After, and ends', async () => {
    await subject.use(async host => {
      await host.process.drain();
      const answer = await host.fetch('/openapi.json');
      expect([answer.status, answer.json['code']]).toEqual([503, 'draining']);
      expect(answer.headers['retry-after']).toBeDefined();
      await host[Symbol.asyncDispose]();
    });
  });
}
