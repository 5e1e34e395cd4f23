import { newId } from '@platform/kernel/base/ids';
import { kernelProblem } from '@platform/kernel/base/kernel-problem';
import type { LocalService } from '@platform/kernel/routing/service-caller';
import type { AnyContract, AnyPlugin } from '@platform/sdk';
import type { Persona } from './persona.ts';

type Asked = { params: Record<string, string>; query: Record<string, unknown>; body: unknown; signal: AbortSignal };
type Answers = Record<string, (input: never) => unknown>;

/** What the services that the kernel itself asks would answer, where no stub says otherwise. */
interface Known {
  readonly personas: ReadonlyMap<string, Persona>;
  readonly audits: Readonly<Record<string, unknown>>[];
  readonly bus: Answers;
}

/** The other services of a booted plugin, all but those that are `real`. What is not stubbed and gets called throws its own name. */
export function stubbedServices(
  plugin: AnyPlugin,
  stubs: Readonly<Record<string, unknown>>,
  { real, away }: { real: readonly string[]; away: boolean },
  known: Known,
): Map<string, LocalService> {
  const uses = plugin.uses as Readonly<Record<string, AnyContract>>;
  const byId = new Map(Object.entries(uses).map(([name, contract]) => [contract.base.id as string, stubs[name] as Answers | undefined]));
  const kernel = askedByKernel(known);
  const ids = new Set([...byId.keys(), ...Object.keys(kernel)].filter(id => !real.includes(id)));
  return new Map(
    [...ids].map(id => [
      id,
      {
        call: async (operation, input, { name: caller }) => {
          const stub = (byId.get(id) ?? (stubs[id] as Answers | undefined))?.[operation] ?? kernel[id]?.[operation];
          if (!stub && away) throw kernelProblem('backend_unresolved');
          if (!stub) throw new Error(`${id}.${operation} was called and is not stubbed`);
          return stub({ ...input, caller } as never);
        },
      } satisfies LocalService,
    ]),
  );
}

const askedByKernel = ({ personas, audits, bus }: Known): Record<string, Answers> => ({
  auth: {
    userScopes: ({ params }: Asked) => ({
      scopes: [...(personas.get(params['user_id'] as string)?.scopes ?? [])],
      as_of: new Date().toISOString(),
    }),
    getWorkload: ({ params }: Asked) => {
      const persona = personas.get(params['name'] as string);
      return { name: params['name'], vertical: persona ? persona.vertical : 'platform', scopes: [...(persona?.scopes ?? [])] };
    },
  },
  bus,
  sys: {
    recordAudits: ({ body }: Asked) => {
      const { events } = body as { events: Record<string, unknown>[] };
      audits.push(...events);
      return { audit_ids: events.map(() => newId()) };
    },
    environmentState: () => ({ state: 'active' }),
    policySnapshot: () => ({ sets: [], relations: [], attributes: [] }),
    listLives: () => ({ items: [], next_cursor: null }),
    registerVertical: ({ body }: Asked) => ({ vertical: (body as { vertical: string }).vertical, version: '', changed: false }),
  },
});
