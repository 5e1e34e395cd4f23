import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { desk, KINDS } from './fixtures/app.ts';
import {
  asAppStore,
  decider,
  type Host,
  newEnv,
  post,
  reader,
  request,
  runOf,
  RUNS_PER_ENV,
  SOON,
  started,
  store,
  until,
  world,
} from './fixtures/world.ts';

let host: Host;
beforeAll(async () => {
  host = await world();
});
afterAll(() => host?.[Symbol.asyncDispose]());
beforeEach(() => {
  desk.asked = [];
  desk.answer = asAppStore;
});

/** What the bus was told of the end of a run, once it was told. */
const told = async (name: string, run: string) => {
  const events = () =>
    host.bus.filter(({ event_type, payload }) => event_type === `platform:workflow:run:${name}` && payload['run_id'] === run);
  await expect.poll(() => events().length, SOON).toBeGreaterThan(0);
  return events();
};
const kinds = () => desk.asked.map(({ body }) => body.kind);
const ofRun = (run: string) => desk.asked.filter(({ body }) => body.run_id === run);

describe('runs', () => {
  test('WFL-003 an installation runs KYCCheckStep, ApprovalReviewStep and DocumentUploadStep in the order of its listing, and its end is told once', async () => {
    const env = newEnv();
    const body = request(env, ['DocumentUploadStep', 'KYCCheckStep', 'ApprovalReviewStep']);
    const [first, again] = await Promise.all([
      post(host, '/v1/workflows/runs', store, body),
      post(host, '/v1/workflows/runs', store, body),
    ]);
    expect([first.status, again.status, again.json]).toEqual([202, 202, first.json]);
    const run = first.json['run_id'] as string;
    const paused = await until(host, { env, run, status: 'paused' });
    expect(kinds()).toEqual(['DocumentUploadStep', 'KYCCheckStep', 'ApprovalReviewStep']);
    await host
      .by(decider(env))
      .decide({ params: { run_id: run, step_id: paused.steps[2]?.step_id as string }, body: { outcome: 'approved' } });
    const done = await until(host, { env, run, status: 'completed' });
    expect((await host.by(reader(env)).listSteps({ params: { run_id: run } })).items).toEqual(done.steps);
    const stranger = host.by(reader(newEnv())).listSteps({ params: { run_id: run } });
    await expect(stranger).rejects.toMatchObject({ status: 404, code: 'run_not_found' });
    expect(kinds()).toEqual(['DocumentUploadStep', 'KYCCheckStep', 'ApprovalReviewStep', 'ApprovalReviewStep']);
    expect(done.steps.map(({ kind, status, output }) => [kind, status, output])).toEqual([
      ['DocumentUploadStep', 'completed', { stub: true }],
      ['KYCCheckStep', 'completed', { stub: true }],
      ['ApprovalReviewStep', 'completed', { approved_by: expect.any(String) }],
    ]);
    expect(await told('completed', run)).toMatchObject([
      { env_id: env, payload: { run_id: run, workflow: 'app-install', service: 'app', idempotency_key: body.idempotency_key } },
    ]);
    await expect
      .poll(
        () => host.audits.filter(({ resource }) => (resource as { id?: string } | undefined)?.id === run).map(({ action }) => action),
        SOON,
      )
      .toEqual(['workflow.run.started']);
  });

  test('WFL-004 what a step is asked has the one shared shape, and what does not answer in it fails its run', async () => {
    const env = newEnv();
    const run = await started(host, env, ['KYCCheckStep']);
    await until(host, { env, run, status: 'completed' });
    const [{ body }] = ofRun(run) as [(typeof desk.asked)[number]];
    expect(body).toEqual({
      ...{ run_id: run, step_id: expect.any(String), domain: 'app', kind: 'KYCCheckStep', env_id: env, attempt: 1 },
      ...{ idempotency_key: `${run}:${body.step_id}`, input: { listing_id: 'shop' } },
    });
    const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) });
    const wrong = [
      { status: 'completed', output: { text: 'x'.repeat(70_000) } },
      { status: 'completed', output: { text: 'a\0b' } },
      { status: 'completed', output: nested(40) },
      { status: 'paused' },
    ];
    for (const answer of wrong) {
      desk.answer = () => answer as never;
      const refused = await started(host, newEnvOf(), ['KYCCheckStep']);
      expect(await until(host, { env: lastEnv, run: refused, status: 'failed' })).toMatchObject({ code: 'answer_invalid' });
      expect(ofRun(refused)).toHaveLength(1);
    }
    const unknown = await started(host, newEnvOf(), ['RefusedStep']);
    expect(await until(host, { env: lastEnv, run: unknown, status: 'failed' })).toMatchObject({ code: 'unknown_step_kind' });
  });

  test('a step that fails for a while is called after 1, 5 and 30 seconds under the same key, then its run fails and says so', async () => {
    const env = newEnv();
    desk.answer = () => ({
      status: 'failed',
      error: { code: 'registry_away', message: 'Ada Lovelace could not be looked up', retryable: true },
    });
    const run = await started(host, env, ['KYCCheckStep']);
    const sql = await host.sql();
    // Time stands still while a call is under way.
    const busy = async () =>
      (await sql`select 1 from work_tasks where state = 'running' or (state = 'waiting' and due_at <= ${host.clock.now()})`).length > 0;
    for (const [tries, pause] of [1, 5, 30].entries()) {
      await expect
        .poll(async () => {
          if (await busy()) return undefined;
          const [step] = (await runOf(host, env, run)).steps;
          if (step?.attempts !== tries + 1) await host.clock.advance('1s');
          return step?.attempts;
        }, SOON)
        .toBe(tries + 1);
      const [task] = await sql<
        { pause: number }[]
      >`select extract(epoch from due_at - created_at)::int as pause from work_tasks where key = ${stepOf(run)} and state = 'waiting'`;
      expect(task?.pause).toBe(pause);
    }
    const failed = await until(host, { env, run, status: 'failed', advance: '5s' });
    expect(failed).toMatchObject({ code: 'registry_away', steps: [{ attempts: 4, status: 'failed' }] });
    expect(ofRun(run).map(({ body }) => [body.attempt, body.idempotency_key])).toEqual(
      [1, 2, 3, 4].map(attempt => [attempt, `${run}:${stepOf(run)}`]),
    );
    expect(await told('failed', run)).toMatchObject([
      { env_id: env, payload: { run_id: run, code: 'registry_away', step_id: stepOf(run) } },
    ]);
  });

  test('a process that dies after a call and before its outcome was written calls again under the same key, and the outcome counts once', async () => {
    const env = newEnv();
    const sql = await host.sql();
    await sql`create function lost() returns trigger language plpgsql as 'begin raise exception ''the process died''; end'`;
    await sql`create trigger lost before update on steps for each row when (new.status = 'completed') execute function lost()`;
    const run = await started(host, env, ['KYCCheckStep', 'DocumentUploadStep']);
    await expect.poll(() => ofRun(run).length, SOON).toBe(1);
    await expect
      .poll(
        async () =>
          (await sql<{ attempts: number }[]>`select attempts from work_tasks where key = ${stepOf(run)} and state = 'waiting'`)[0]
            ?.attempts,
        SOON,
      )
      .toBe(1);
    await sql`drop trigger lost on steps`;
    await until(host, { env, run, status: 'completed', advance: '1s' });
    expect(ofRun(run).map(({ body }) => [body.kind, body.attempt, body.idempotency_key])).toEqual([
      ['KYCCheckStep', 1, `${run}:${stepOf(run)}`],
      ['KYCCheckStep', 1, `${run}:${stepOf(run)}`],
      ['DocumentUploadStep', 1, expect.stringMatching(`^${run}:`)],
    ]);
    expect(await told('completed', run)).toHaveLength(1);
  });

  test('the outcome of a call whose task another process has taken over meanwhile does not count', async () => {
    const env = newEnv();
    const sql = await host.sql();
    // Of what is rolled back a sequence alone remembers that it was tried.
    await sql`create sequence tried`;
    await sql`create function tried() returns trigger language plpgsql as 'begin perform nextval(''tried''); return new; end'`;
    await sql`create trigger tried before update on steps for each row when (new.status = 'completed') execute function tried()`;
    const held = Promise.withResolvers<void>();
    desk.answer = async () => {
      await held.promise;
      return { status: 'completed', output: { by: 'the first' } };
    };
    const run = await started(host, env, ['KYCCheckStep']);
    await expect.poll(() => ofRun(run).length, SOON).toBe(1);
    desk.answer = () => ({ status: 'completed', output: { by: 'the second' } });
    await sql`update work_tasks set taken_by = 'another' where key = ${stepOf(run)}`;
    held.resolve();
    await expect.poll(async () => (await sql<{ is_called: boolean }[]>`select is_called from tried`)[0]?.is_called, SOON).toBe(true);
    await sql`update work_tasks set leased_until = '2020-01-01' where key = ${stepOf(run)} and state = 'running'`;
    const done = await until(host, { env, run, status: 'completed', advance: '5s' });
    await sql`drop function tried() cascade`;
    await sql`drop sequence tried`;
    expect(done.steps.map(({ output, attempts }) => [output, attempts])).toEqual([[{ by: 'the second' }, 1]]);
    expect(ofRun(run).map(({ body }) => body.idempotency_key)).toEqual([1, 2].map(() => `${run}:${stepOf(run)}`));
    expect(await told('completed', run)).toHaveLength(1);
  });

  test('a step that does not answer within ten seconds counts as a failed try', async () => {
    const env = newEnv();
    const held = Promise.withResolvers<never>();
    desk.answer = () => held.promise;
    const run = await started(host, env, ['KYCCheckStep']);
    await expect.poll(() => ofRun(run).length, SOON).toBe(1);
    await host.clock.advance('10s');
    await expect.poll(async () => (await runOf(host, env, run)).steps[0], SOON).toMatchObject({ attempts: 1, code: 'step_unavailable' });
    desk.answer = asAppStore;
    await until(host, { env, run, status: 'completed', advance: '1s' });
    held.reject(new Error('too late'));
  });

  test('an operator ends a run: it is told as failed, and what its step answers afterwards does not count', async () => {
    const env = newEnv();
    const held = Promise.withResolvers<void>();
    desk.answer = async () => {
      await held.promise;
      return { status: 'completed' };
    };
    const run = await started(host, env, ['KYCCheckStep', 'DocumentUploadStep']);
    await expect.poll(() => ofRun(run).length, SOON).toBe(1);
    const path = `/v1/workflows/runs/${run}/cancel`;
    expect((await post(host, path, reader(env))).status).toBe(403);
    expect((await post(host, `${path}?target_env_id=${env}`, as.machine('shop', 'workflow:runs:write'))).status).toBe(404);
    expect(await post(host, path, decider(env))).toMatchObject({ status: 200, json: { status: 'failed', code: 'cancelled' } });
    expect((await post(host, path, decider(env))).status).toBe(200);
    held.resolve();
    expect(await told('failed', run)).toMatchObject([{ payload: { code: 'cancelled' } }]);
    const sql = await host.sql();
    await expect
      .poll(async () => (await sql`select 1 from work_tasks where key = ${stepOf(run)} and state in ('waiting', 'running')`).length, SOON)
      .toBe(0);
    expect(await runOf(host, env, run)).toMatchObject({ status: 'failed', steps: [{ status: 'failed' }, { status: 'waiting' }] });
    expect(kinds()).toEqual(['KYCCheckStep']);
    desk.answer = asAppStore;
    const done = await started(host, env, ['KYCCheckStep']);
    await until(host, { env, run: done, status: 'completed' });
    expect(await post(host, `/v1/workflows/runs/${done}/cancel`, decider(env))).toMatchObject({
      status: 409,
      json: { code: 'run_finished' },
    });
  });

  test('runs that are under way are counted for each environment, and one more is refused until one ends', async () => {
    const env = newEnv();
    const runs: string[] = [];
    for (let count = 0; count < RUNS_PER_ENV; count++) runs.push(await started(host, env, ['ApprovalReviewStep']));
    const refused = await post(host, '/v1/workflows/runs', store, request(env, ['ApprovalReviewStep']));
    expect([refused.status, refused.json['code'], refused.headers['retry-after']]).toEqual([429, 'too_many_runs', '60']);
    await started(host, newEnv(), ['KYCCheckStep']);
    await post(host, `/v1/workflows/runs/${runs[0]}/cancel`, decider(env));
    await started(host, env, ['ApprovalReviewStep']);
  });
});

describe('step handlers', () => {
  test('a run whose domain nobody has registered is refused until its service has said that it answers', async () => {
    const sql = await host.sql();
    const [kept] = await sql<{ domain: string }[]>`delete from step_handlers where domain = 'app' returning *`;
    const begin = () => post(host, '/v1/workflows/runs', store, request(newEnv(), ['KYCCheckStep']));
    expect(await begin()).toMatchObject({ status: 409, json: { code: 'domain_unregistered' } });
    await sql`insert into step_handlers ${sql.row(kept as never)}`;
    expect((await begin()).status).toBe(202);
  });

  test('WFL-001 a service registers itself for a domain, which nobody takes from it, and is called back at its path by the workflow service alone', async () => {
    const credit = as.machine('credit', 'workflow:handlers:write');
    const own = { service: 'credit', kinds: ['Score'], path: '/v1/internal/steps/execute' };
    const register = (more: object) =>
      host.fetch('/v1/workflows/step-handlers/loans', { method: 'PUT', body: JSON.stringify(own), ...more });
    expect((await register({ persona: credit })).json['code']).toBe('certificate_binding_required');
    const bound = { as: await host.workload('credit') };
    const [first, again] = [await register(bound), await register(bound)];
    expect([first.status, again.status, again.json]).toEqual([200, 200, first.json]);
    const by = host.by(as.machine('shop', 'workflow:handlers:write'));
    await expect(by.registerHandler({ params: { domain: 'loans' }, body: { ...own, service: 'shop' } })).rejects.toMatchObject({
      status: 409,
      code: 'domain_taken',
    });
    await expect(by.registerHandler({ params: { domain: 'loans' }, body: own })).rejects.toMatchObject({
      status: 403,
      code: 'handler_denied',
    });
    await expect(by.registerHandler({ params: { domain: 'app' }, body: { ...own, service: 'shop' } })).rejects.toMatchObject({
      status: 409,
      code: 'domain_taken',
    });
    await expect(by.registerHandler({ params: { domain: 'A B' }, body: { ...own, service: 'shop' } })).rejects.toMatchObject({
      status: 400,
      code: 'validation_failed',
    });
    for (const path of ['/v1/runs', '/v1/internal/../runs', '/v1/internal/a?b=c', 'https://elsewhere/v1/internal/a'])
      await expect(by.registerHandler({ params: { domain: 'shop' }, body: { ...own, service: 'shop', path } })).rejects.toMatchObject({
        status: 400,
        code: 'validation_failed',
      });

    const env = newEnv();
    const run = await started(host, env, ['KYCCheckStep']);
    await until(host, { env, run, status: 'completed' });
    expect(ofRun(run)).toMatchObject([{ who: 'workflow', bound: true, body: { domain: 'app', kind: 'KYCCheckStep' } }]);
    const call = async (who: string) =>
      (
        await host.fetch('/v1/internal/steps/execute', {
          method: 'POST',
          host: 'app.ops.sys.localhost',
          as: await host.workload(who),
          body: JSON.stringify(ofRun(run)[0]?.body),
        })
      ).status;
    expect([await call('workflow'), await call('app'), await call('credit')]).toEqual([200, 403, 403]);
    const { items } = await host.by(as.user('workflow:handlers:read')).listHandlers();
    expect(items.map(({ domain, service, kinds: known }) => [domain, service, known])).toEqual([
      ['app', 'app', KINDS],
      ['loans', 'credit', ['Score']],
    ]);
  });
});

let lastEnv = '';
const newEnvOf = () => (lastEnv = newEnv());
const stepOf = (run: string): string => ofRun(run)[0]?.body.step_id ?? '';
