import { defineContract, Type } from '@platform/sdk/contract';
import { pages } from './pages.ts';
import { problems } from './problems.ts';
import { catalogRoutes } from './routes/catalog-routes.ts';
import { machineRoutes } from './routes/machine-routes.ts';
import { serviceRoutes } from './routes/service-routes.ts';

const seconds = (env: string, value: number, description: string, minimum = 0) =>
  Type.Integer({ env, default: value, minimum, maximum: 86_400, description });

/** The fleet supervisor: one for each machine (doc3; G-CAP). */
export const supervisor = defineContract({
  id: 'captain',
  title: 'Fleet',
  placement: { tier: 0, singleton: true },
  forApplications: false,
  essential: true,
  /** Itself on other machines, which it asks to leave. */
  uses: { captain: ['captain:admin'] },
  workloads: {
    /** Starts services on other machines, and may do nothing else (SUP-105). */
    remote: { captain: ['captain:instances:write'] },
    /** Hears of changed policies (SUP-065). */
    policy: { bus: ['bus:consume'] },
  },
  capabilities: ['key-value', 'backends', 'processes'],
  folders: ['machines'],
  config: Type.Object({
    maxRestarts: Type.Integer({
      env: 'PLATFORM_CAPTAIN_MAX_RESTARTS',
      default: 3,
      minimum: 1,
      maximum: 100,
      description: 'Restarts of a service before it is given up with an alert',
    }),
    lastResortS: seconds(
      'PLATFORM_CAPTAIN_LAST_RESORT_RESPAWN_S',
      300,
      'Pace in seconds of attempts to start a service that was given up on; 0 makes none',
    ),
    graceS: seconds('PLATFORM_CAPTAIN_CERT_GRACE_S', 120, 'Seconds after its start in which a service may be warming up; 0 gives none'),
    tierTimeoutS: seconds(
      'PLATFORM_CAPTAIN_TIER_GATE_TIMEOUT',
      60,
      'Seconds that the start waits for a tier before it goes on with the next',
      1,
    ),
    upgradeWindowS: seconds(
      'PLATFORM_CAPTAIN_UPGRADE_WINDOW_S',
      60,
      'Seconds that an upgrade watches the next instance, before the old one ends and after',
      1,
    ),
    drainS: seconds('PLATFORM_CAPTAIN_DRAIN_S', 30, 'Seconds at most that an upgrade waits for what is under way on the old instance'),
    catalogPaths: Type.String({
      env: 'PLATFORM_CAPTAIN_CATALOG_PATHS',
      default: '',
      description: 'Files with further lines of the catalog, separated by colons',
    }),
    edgeIp: Type.String({
      env: 'PLATFORM_CAPTAIN_EDGE_IP',
      default: '',
      description: 'Machine that pin:edge stands for; the first one when unset',
    }),
    telemetry: Type.Union([Type.Literal('host'), Type.Literal('cgroup')], {
      env: 'PLATFORM_CAPTAIN_TELEMETRY',
      default: 'host',
      description: 'What a machine measures: the host, or its own container',
    }),
    minMachines: Type.Integer({
      env: 'PLATFORM_CAPTAIN_MIN_MACHINES',
      default: 1,
      minimum: 1,
      maximum: 1_000,
      description: 'Fewest machines of the fleet: it grows to them, and gives none of them back',
    }),
    maxMachines: Type.Integer({
      env: 'PLATFORM_CAPTAIN_MAX_MACHINES',
      default: 1,
      minimum: 1,
      maximum: 1_000,
      description: 'Most machines of the fleet',
    }),
    provisionProfile: Type.String({
      env: 'PLATFORM_CAPTAIN_PROVISION_PROFILE',
      default: 'never',
      description: 'How machines are added: auto, manual (somebody approves) or never',
    }),
    machineKit: Type.String({
      env: 'PLATFORM_CAPTAIN_MACHINE_KIT',
      default: '',
      description: 'What makes machines: local, container, cloud, hypervisor, or the folder of a module of your own',
    }),
    machineEnvFile: Type.String({
      env: 'PLATFORM_CAPTAIN_MACHINE_ENV_FILE',
      default: '',
      description: 'File whose content becomes the environment file of new machines',
    }),
  }),
  actions: {
    'captain:admin': { title: 'Run services and machines of the platform' },
    'captain:instances:write': { title: 'Start services on another machine', principals: ['machine'], bound: true },
  },
  problems,
  events: {},
  routes: { ...serviceRoutes, ...catalogRoutes, ...machineRoutes },
  pages,
});
