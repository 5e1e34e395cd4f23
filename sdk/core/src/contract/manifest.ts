import type { TSchema } from 'typebox';
import type { Action } from './action.ts';
import type { EnvironmentEnd, FirstStep, InboxDecl, Placement, WorkloadNeeds } from './contract.ts';
import type { EventDef, Subscription } from './event.ts';
import type { KeyDecl } from './key.ts';
import type { MetricDef } from './metric.ts';
import type { PageDecl } from './page/page.ts';
import type { ProblemDecl } from './problem.ts';
import type { AnyRoute, RouteEnv } from './route.ts';
import type { JobDef, TaskDef } from './task.ts';
import type { TemplateDecl } from './template.ts';

/**
 * The JSON of a contract: what the console, the catalog, the checks and other processes read; the plugin's code is not needed for it
 * (G-K-21).
 */
export interface Manifest {
  readonly sdk: 1;
  readonly id: string;
  readonly vertical: string;
  readonly title: string;
  readonly version: string;
  readonly family: string;
  readonly uses: WorkloadNeeds;
  readonly workloads: Readonly<Record<string, WorkloadNeeds>>;
  readonly placement: Placement;
  readonly env: RouteEnv;
  readonly essential: boolean;
  readonly forApplications?: false;
  readonly unversioned?: Readonly<Record<string, string>>;
  readonly config?: TSchema;
  readonly keys: Readonly<Record<string, KeyDecl>>;
  readonly actions: Readonly<Record<string, Action>>;
  readonly problems: Readonly<Record<string, ProblemDecl>>;
  readonly events: Readonly<Record<string, EventDef>>;
  readonly consumes: Readonly<Record<string, Subscription>>;
  readonly jobs: Readonly<Record<string, JobDef>>;
  readonly tasks: Readonly<Record<string, TaskDef>>;
  readonly metrics?: Readonly<Record<string, MetricDef>>;
  readonly routes: Readonly<Record<string, AnyRoute>>;
  readonly pages: Readonly<Record<string, PageDecl>>;
  readonly templates?: Readonly<Record<string, TemplateDecl>>;
  readonly onEnvironmentDeleted?: EnvironmentEnd;
  readonly rowSecurity?: readonly string[];
  readonly inbox?: InboxDecl;
  readonly firstSteps?: FirstStep;
  readonly capabilities: readonly string[];
  readonly folders: readonly string[];
  readonly waivers: Readonly<Record<string, string>>;
  readonly aliases: Readonly<Record<string, string>>;
  readonly hosts: readonly string[];
}
