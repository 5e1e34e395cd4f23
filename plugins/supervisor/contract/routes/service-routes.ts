import { get, post, SortQuery, stream, Type } from '@platform/sdk/contract';
import { Accepted, Instance, UpgradeProgress, WorkerProcess } from '../schema/instance.ts';

const ofInstanceKey = { instance_key: Type.String({ maxLength: 80 }) };

const gate = 'captain:admin';
const ACTION_PROBLEMS = [
  'instance_not_found',
  'self_target',
  'elsewhere',
  'upgrade_in_progress',
  'no_upgrade',
  'last_active_instance',
  'unknown_release',
  'channel_restricted',
] as const;
const act = { gate, returns: Accepted, status: 202, problems: ACTION_PROBLEMS } as const;

/** Instances of the fleet, and what can be done to one of this machine (G-CAP-03, G-CAP-04). */
export const serviceRoutes = {
  readiness: get('/v1/captain/readiness', {
    summary: 'Whether every service has the instances it needs',
    gate: { public: 'Probes hold no credential' },
    returns: Type.Object({
      ready: Type.Boolean(),
      missing: Type.Array(Type.Object({ service_type: Type.String(), active: Type.Integer(), needed: Type.Integer() })),
    }),
  }),
  services: get('/v1/captain/services', {
    summary: 'Instances of services',
    gate,
    query: {
      service_type: Type.Optional(Type.String({ maxLength: 31 })),
      status: Type.Optional(Type.String({ maxLength: 20 })),
      q: Type.Optional(Type.String({ maxLength: 100, title: 'Search' })),
      ...SortQuery('title', 'status', 'metrics.cpu_pct', 'metrics.mem_mb', 'metrics.latency_ms', 'restarts'),
    },
    returns: Type.Object({ items: Type.Array(Instance) }),
  }),
  service: get('/v1/captain/services/{instance_key}', {
    params: ofInstanceKey,
    summary: 'One instance',
    gate,
    returns: Instance,
    problems: ['instance_not_found'],
  }),
  serviceLog: get('/v1/captain/services/{instance_key}/log', {
    params: ofInstanceKey,
    summary: 'The last lines an instance wrote',
    gate,
    query: { lines: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 })) },
    returns: Type.Object({ service_type: Type.String(), lines: Type.Array(Type.String()) }),
    problems: ['instance_not_found', 'elsewhere'],
  }),
  serviceProcesses: get('/v1/captain/services/{instance_key}/processes', {
    params: ofInstanceKey,
    summary: 'Processes that an instance has started itself: workers, behind walls of their own',
    gate,
    returns: Type.Object({ service_type: Type.String(), items: Type.Array(WorkerProcess) }),
    problems: ['instance_not_found', 'elsewhere'],
  }),
  restart: post('/v1/captain/services/{instance_key}/restart', { params: ofInstanceKey, ...act, summary: 'Restart an instance' }),
  stop: post('/v1/captain/services/{instance_key}/stop', {
    params: ofInstanceKey,
    ...act,
    summary: 'Stop an instance',
    body: Type.Object({ force: Type.Optional(Type.Boolean({ description: 'Even the last one that is active' })) }),
  }),
  drain: post('/v1/captain/services/{instance_key}/drain', { params: ofInstanceKey, ...act, summary: 'Take an instance out of turn' }),
  upgrade: post('/v1/captain/services/{instance_key}/upgrade', {
    params: ofInstanceKey,
    ...act,
    summary: 'Replace an instance by one of the code on disk, or of a release',
    body: Type.Object({
      version: Type.Optional(Type.String({ maxLength: 64, description: 'A named release; the code on disk when absent' })),
    }),
  }),
  abortUpgrade: post('/v1/captain/services/{instance_key}/abort-upgrade', {
    params: ofInstanceKey,
    ...act,
    summary: 'Abort the upgrade of an instance',
  }),
  rollback: post('/v1/captain/services/{instance_key}/rollback', {
    params: ofInstanceKey,
    ...act,
    summary: 'Go back to the instance before',
  }),
  unknownAction: post('/v1/captain/services/{instance_key}/{action}', {
    params: { instance_key: Type.String({ maxLength: 80 }), action: Type.String({ maxLength: 40 }) },
    summary: 'Any other action',
    gate,
    problems: ['unknown_action', 'instance_not_found', 'channel_restricted'],
    hidden: true,
  }),
  upgradeStatus: get('/v1/captain/upgrade-status', {
    summary: 'How far upgrades are',
    gate,
    query: { instance_key: Type.Optional(Type.String({ maxLength: 80 })) },
    returns: Type.Object({ items: Type.Array(UpgradeProgress) }),
  }),
  upgradeStream: stream('/v1/captain/upgrade-stream', { summary: 'Upgrades as they go on', gate }),
  startupStream: stream('/v1/captain/startup-stream', { summary: 'Starts as they go on, and alerts', gate }),
  shutdownStream: stream('/v1/captain/shutdown-stream', { summary: 'The shutdown as it goes on', gate }),
} as const;
