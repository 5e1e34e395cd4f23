import { type AnyRoute, gateActions } from '@platform/sdk';
import { as, type Persona } from '../persona.ts';
import { type ConformanceSubject, sample, sampleParams } from './conformance-subject.ts';
import { NoSample, sampleOf } from './sample.ts';

/** A request that fits what a route asks for, by somebody who may. */
export interface Try {
  readonly name: string;
  readonly route: AnyRoute;
  readonly persona: Persona;
  /** The route's path with the parameters in it. */
  readonly path: string;
  readonly input: {
    readonly params: Readonly<Record<string, string>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body?: unknown;
    readonly targetEnvId: string;
  };
}

/** The same by nobody in particular. */
export type OpenTry = Pick<Try, 'route' | 'path'> & { readonly input: { readonly body?: unknown }; readonly persona?: Persona };

/** A try of every gated route. Those whose requests the kit cannot make up are left out. */
export function triesOf(subject: ConformanceSubject): Try[] {
  return subject.gated.flatMap(([name, route]) => {
    try {
      return [tryOf(subject, name, route)];
    } catch (error) {
      if (error instanceof NoSample) return [];
      throw error;
    }
  });
}

/** A try of every route that anybody may ask, with a body. */
export function openTriesOf(subject: ConformanceSubject): OpenTry[] {
  const open = subject.routes.filter(([, { door, options }]) => door === 'request' && options.body && !gateActions(options.gate));
  return open.flatMap(([, route]) => {
    try {
      return [{ route, path: sample(route), input: { body: sampleOf(route.options.body) } }];
    } catch (error) {
      if (error instanceof NoSample) return [];
      throw error;
    }
  });
}

function tryOf(subject: ConformanceSubject, name: string, route: AnyRoute): Try {
  const { options } = route;
  const declared = gateActions(options.gate) ?? [];
  const isMachine = declared.length > 0 && declared.every(action => onlyMachines(subject, action));
  const scopes = declared.map(action => (isMachine ? action : subject.scope(action)));
  const persona = isMachine ? as.machine('sys', ...scopes) : as.user(...scopes);
  const params = sampleParams(route);
  const query = Object.entries(options.query ?? {}).filter(([, schema]) => !('~optional' in schema));
  return {
    name,
    route,
    persona,
    path: sample(route),
    input: {
      params,
      query: Object.fromEntries(query.map(([member, schema]) => [member, sampleOf(schema)])),
      targetEnvId: persona.envId,
      ...(options.body ? { body: sampleOf(options.body) } : {}),
    },
  };
}

const onlyMachines = ({ contract }: ConformanceSubject, action: string): boolean =>
  contract.actions[action]?.principals?.every((kind: string) => kind === 'machine') ?? false;
