import { readFileSync } from 'node:fs';
import { SYSTEM } from '@platform/sdk';
import { as } from '@platform/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { desk } from './fixtures/app.ts';
import {
  approval,
  asAppStore,
  decider,
  groups,
  type Host,
  newEnv,
  post,
  reader,
  request,
  runOf,
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
const ofRun = (run: string) => desk.asked.filter(({ body }) => body.run_id === run);

describe('decisions', () => {
  const waiting = async (env: string, group = `platform:env:${env}:admins`) => {
    desk.answer = asked => (asked.kind === 'ApprovalReviewStep' && !asked.decision ? approval(group) : asAppStore(asked));
    const run = await started(host, env, ['ApprovalReviewStep', 'KYCCheckStep']);
    const { steps } = await until(host, { env, run, status: 'paused' });
    return { run, step: steps[0]?.step_id as string, path: `/v1/workflows/runs/${run}/steps/${steps[0]?.step_id}/decision` };
  };

  test('WFL-002 a manual decision pauses a run until somebody approves it: the same again is the same, anything else is refused', async () => {
    const env = newEnv();
    const { run, step, path } = await waiting(env);
    await host.clock.advance('1h');
    expect(await runOf(host, env, run)).toMatchObject({
      status: 'paused',
      steps: [{ status: 'paused', title: 'Approve the shop' }, { status: 'waiting' }],
    });
    expect(ofRun(run)).toHaveLength(1);
    const ada = decider(env);
    const approve = { outcome: 'approved', comment: 'looks fine' };
    const [first, again] = [await post(host, path, ada, approve), await post(host, path, decider(env), approve)];
    expect([first.status, again.status]).toEqual([200, 200]);
    for (const other of [{ outcome: 'rejected' }, { outcome: 'approved' }])
      expect(await post(host, path, ada, other)).toMatchObject({ status: 409, json: { code: 'decided_otherwise' } });
    const done = await until(host, { env, run, status: 'completed' });
    const decision = { outcome: 'approved', comment: 'looks fine', by: ada.id, at: expect.any(String) };
    expect(done.steps[0]?.decision).toEqual(decision);
    expect(ofRun(run).map(({ body }) => [body.kind, body.decision, body.idempotency_key === `${run}:${step}`])).toEqual([
      ['ApprovalReviewStep', undefined, true],
      ['ApprovalReviewStep', decision, true],
      ['KYCCheckStep', undefined, false],
    ]);
    await expect
      .poll(
        () => host.audits.filter(({ action, resource }) => action === 'workflow.step.decided' && (resource as { id: string }).id === step),
        SOON,
      )
      .toMatchObject([{ env_id: env, actor: { kind: 'user', id: ada.id }, details: { outcome: 'approved' } }]);
  });

  test('a decline goes to the step, and fails its run with the reason that the step gives', async () => {
    const env = newEnv();
    const { run, path } = await waiting(env);
    await post(host, path, decider(env), { outcome: 'rejected', comment: 'no licence' });
    expect(await until(host, { env, run, status: 'failed' })).toMatchObject({
      code: 'rejected',
      detail: 'no licence',
      steps: [{ decision: { outcome: 'rejected' } }, { status: 'waiting' }],
    });
  });

  test('members of the group decide, and who may make any decision; nobody else, also not a group of that name elsewhere', async () => {
    const env = newEnv();
    const group = `platform:env:${env}:admins`;
    const { path, step } = await waiting(env, group);
    const [member, namesake, stranger] = [reader(env), reader(env), as.userIn(newEnv(), 'workflow:decisions:write', 'workflow:runs:read')];
    groups.set(member.id, [{ name: group, env_id: env }]);
    groups.set(namesake.id, [{ name: group, env_id: newEnv() }]);
    const body = { outcome: 'approved' };
    expect(await post(host, path, namesake, body)).toMatchObject({ status: 403, json: { code: 'decision_denied' } });
    expect(await post(host, path, stranger, body)).toMatchObject({ status: 404, json: { code: 'step_not_found' } });
    expect(await post(host, `${path}?target_env_id=${env}`, stranger, body)).toMatchObject({
      status: 403,
      json: { code: 'target_denied' },
    });
    expect((await post(host, `${path}?target_env_id=${env}`, store, body)).status).toBe(403);
    expect((await post(host, path, as.userIn(env, 'workflow:runs:read'), body)).status).toBe(403);
    const listed = async (persona: typeof member) => (await host.by(persona).listDecisions()).items.map(({ step_id }) => step_id);
    expect([await listed(member), await listed(namesake), await listed(decider(env)), await listed(stranger)]).toEqual([
      [step],
      [],
      [step],
      [],
    ]);
    const page = `/v1/admin/waiting/${step}/approveStep?target_env_id=${env}`;
    expect(await post(host, page, member, { comment: 'by the page' })).toMatchObject({
      status: 200,
      json: { steps: [{ decision: { outcome: 'approved', by: member.id, comment: 'by the page' } }, {}] },
    });
    expect(await listed(member)).toEqual([]);
    const operators = await waiting(env, 'platform:operators');
    groups.set(member.id, [{ name: 'platform:operators', env_id: SYSTEM.envId }]);
    expect((await post(host, `/v1/admin/run/${operators.step}/declineStep?target_env_id=${env}`, member, {})).status).toBe(200);
  });

  test('a token that was given less than its person may decides no more than the token says', async () => {
    const env = newEnv();
    const { path } = await waiting(env);
    const staff = as.delegated(env, 'workflow:runs:read', 'workflow:decisions:take', 'workflow:decisions:write');
    const narrow = host.mint.token(staff, 'workflow', { scope: 'platform:workflow:decisions:take' });
    const decide = (token: string) => host.fetch(path, { method: 'POST', token, body: JSON.stringify({ outcome: 'approved' }) });
    host.by(staff);
    expect(await decide(narrow)).toMatchObject({ status: 403, json: { code: 'decision_denied' } });
    expect((await host.fetch('/v1/workflows/decisions', { token: narrow })).json['items']).toEqual([]);
    expect(await decide(host.mint.token(staff, 'workflow'))).toMatchObject({
      status: 200,
      json: { steps: [{ decision: { by: staff.id } }, {}] },
    });
  });

  test('a decision that nobody makes in seven days fails its run', async () => {
    const env = newEnv();
    const { run, path } = await waiting(env);
    await host.clock.leap('6d');
    expect((await runOf(host, env, run)).status).toBe('paused');
    const sql = await host.sql();
    await sql`update steps set expires_at = ${host.clock.now()} where step_id = ${stepOf(run)}`;
    expect(await post(host, path, decider(env), { outcome: 'approved' })).toMatchObject({
      status: 409,
      json: { code: 'step_not_waiting' },
    });
    const other = await waiting(env);
    await host.clock.leap('7d');
    for (const each of [run, other.run]) {
      await until(host, { env, run: each, status: 'failed', advance: '1m' });
      expect(await told('failed', each)).toMatchObject([{ payload: { code: 'decision_expired' } }]);
    }
  });
});

describe('hostile input', () => {
  const start = (body: object, persona = store) => post(host, '/v1/workflows/runs', persona, body);

  test('what does not fit is a clear 4xx, and starts nothing', async () => {
    const env = newEnv();
    const code = async (body: object, persona = store) => {
      const { status, json } = await start(body, persona);
      return [status, json['code']];
    };
    const of = (more: object) => request(env, ['KYCCheckStep'], more);
    expect(await code(of({ input: { steps: ['PaymentStep'] } }))).toEqual([400, 'unknown_step_kind']);
    for (const workflow of ['other', '__proto__', 'constructor']) expect(await code(of({ workflow }))).toEqual([400, 'unknown_workflow']);
    for (const steps of [undefined, [], 'KYCCheckStep', [1], Array.from({ length: 33 }, () => 'KYCCheckStep')])
      expect(await code(of({ input: { steps } }))).toEqual([400, 'input_refused']);
    expect(await code(of({ input: { steps: ['KYCCheckStep'], text: 'x'.repeat(65_536) } }))).toEqual([413, 'input_too_large']);
    expect(await code(of({ input: { steps: ['KYCCheckStep'], text: 'x'.repeat(100_000) } }))).toEqual([413, 'body_too_large']);
    const deep = JSON.stringify(of({ input: { steps: ['KYCCheckStep'], deep: 0 } })).replace(
      '"deep":0',
      `"deep":${'['.repeat(30_000)}${']'.repeat(30_000)}`,
    );
    expect((await host.fetch('/v1/workflows/runs', { method: 'POST', persona: store, body: deep })).json['code']).toBe('input_refused');
    for (const more of [{ idempotency_key: 'a\0b' }, { input: { steps: ['KYCCheckStep'], 'a\0': 1 } }, { env_id: 'nowhere' }, { more: 1 }])
      expect(await code(of(more))).toEqual([400, 'validation_failed']);
    expect(await code(of({}), as.machine('shop', 'workflow:runs:write'))).toEqual([403, 'run_denied']);
    expect(await code(of({}), as.machine('app'))).toEqual([403, 'policy_denied']);
    expect(await code(of({}), decider(env))).toEqual([403, 'm2m_required']);
    expect((await host.by(reader(env)).listRuns()).items).toEqual([]);

    const run = await started(host, env, ['KYCCheckStep'], { idempotency_key: 'once' });
    expect(await code(request(env, ['DocumentUploadStep'], { idempotency_key: 'once' }))).toEqual([409, 'key_reused']);
    const elsewhere = await started(host, newEnv(), ['KYCCheckStep'], { idempotency_key: 'once' });
    expect(elsewhere).not.toBe(run);
  });

  test('nobody sees the runs of another environment, and a workload sees those it started alone', async () => {
    const env = newEnv();
    const run = await started(host, env, ['KYCCheckStep']);
    await until(host, { env, run, status: 'completed' });
    const status = async (path: string, persona = reader(env)) => (await host.fetch(path, { persona })).status;
    const path = `/v1/workflows/runs/${run}`;
    expect([
      await status(path),
      await status(path, reader(newEnv())),
      await status(`${path}?target_env_id=${env}`, reader(newEnv())),
    ]).toEqual([200, 404, 403]);
    expect([
      await status(`${path}?target_env_id=${env}`, store),
      await status(`${path}?target_env_id=${env}`, as.machine('shop', 'workflow:runs:write')),
    ]).toEqual([200, 404]);
    for (const odd of ['x', '%00', "1' or '1'='1", run.toUpperCase()])
      expect(await status(`/v1/workflows/runs/${encodeURIComponent(odd)}`)).not.toBe(500);
    const { items, next_cursor } = await host
      .by(reader(env))
      .listRuns({ query: { status: 'completed', workflow: 'app-install', limit: 1 } });
    expect([items.map(({ run_id }) => run_id), next_cursor]).toEqual([[run], null]);
    expect((await host.by(reader(env)).listRuns({ query: { status: 'failed' } })).items).toEqual([]);
  });

  test('a deleted environment takes its runs along, after saying how many there are; what a step then answers is nobody’s', async () => {
    const env = newEnv();
    const held = Promise.withResolvers<void>();
    desk.answer = async () => {
      await held.promise;
      return { status: 'completed' };
    };
    const run = await started(host, env, ['KYCCheckStep']);
    await expect.poll(() => ofRun(run).length, SOON).toBe(1);
    const sys = await host.workload('sys');
    const ask = (what: string) =>
      host.fetch(`/v1/internal/environments/${what}`, { method: 'POST', as: sys, body: JSON.stringify({ env_ids: [env] }) });
    expect((await ask('counts')).json).toEqual({ counts: { 'workflow runs': 1 } });
    expect((await ask('purge')).json).toEqual({ counts: { 'workflow runs': 1 } });
    held.resolve();
    const sql = await host.sql();
    await expect
      .poll(async () => (await sql`select 1 from work_tasks where key = ${ofRun(run)[0]?.body.step_id as string}`).length, SOON)
      .toBe(0);
    expect((await sql`select 1 from steps where run_id = ${run}`).length).toBe(0);
    expect(host.bus.filter(({ payload }) => payload['run_id'] === run)).toEqual([]);
  });

  test('neither what people wrote nor what a run carries is in the log', async () => {
    await host.process.telemetry.flush();
    const log = readFileSync(`${host.stores.dataDir}/logs/test-workflow.log`, 'utf8');
    expect(log).toContain('a step failed, and its run with it');
    for (const word of ['Ada Lovelace', 'looks fine', 'no licence', 'listing_id']) expect(log).not.toContain(word);
  });
});
const stepOf = (run: string): string => ofRun(run)[0]?.body.step_id ?? '';
