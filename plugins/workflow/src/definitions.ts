/** What a workflow does: its steps by kind, in order, all answered by the service of one domain. */
export interface Definition {
  readonly domain: string;
  /** The kinds that an input asks for; undefined where it does not say so. */
  stepsOf(input: { readonly steps?: unknown }): readonly string[] | undefined;
  /** What of it goes to each step. */
  inputOf(input: { readonly steps?: unknown }): object;
}

const MOST_STEPS = 32;

const DEFINITIONS: Readonly<Record<string, Definition>> = {
  /** What a tenant does before an application is installed: the kinds that its listing names (WFL-003). */
  'app-install': {
    domain: 'app',
    stepsOf: ({ steps }) =>
      Array.isArray(steps) && steps.length > 0 && steps.length <= MOST_STEPS && steps.every(kind => typeof kind === 'string')
        ? steps
        : undefined,
    inputOf: ({ steps: _, ...rest }) => rest,
  },
};

export const definitionOf = (workflow: string): Definition | undefined =>
  Object.hasOwn(DEFINITIONS, workflow) ? DEFINITIONS[workflow] : undefined;
/** A domain of a workflow belongs to the service of the same name, whether it is there yet or not. */
export const isOfWorkflow = (domain: string): boolean => Object.values(DEFINITIONS).some(definition => definition.domain === domain);
