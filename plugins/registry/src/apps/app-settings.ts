import type { AppInstanceChange } from '../../contract/schema/app.ts';
import type { Ctx } from '../context.ts';
import type { Verticals } from '../verticals/verticals.ts';

const FLAG = /^[a-z][a-z0-9]*([._-][a-z0-9]+)*$/;
const MAX_FLAGS = 100;
const MAX_FLAG_LENGTH = 64;

interface Fault {
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
}

/** Refuses names nobody knows: at run time a misspelt key would quietly mean «not restricted» (hardening H-09). */
export async function requireKnownNames(
  ctx: Ctx,
  verticals: Verticals,
  { scope_whitelist: scopes = [], service_whitelist: services = [], feature_flags: flags = {} }: AppInstanceChange,
): Promise<void> {
  const known = scopes.length > 0 ? new Set((await verticals.scopes()).scopes.map(({ scope }) => scope)) : new Set<string>();
  const registered = services.length > 0 ? new Set(await verticals.serviceIds()) : new Set<string>();
  const names = Object.keys(flags);
  const faults: Fault[] = [
    ...scopes.flatMap((scope, index) =>
      known.has(scope) ? [] : [{ pointer: `/scope_whitelist/${index}`, code: 'unknown_scope', message: 'is not in the scope catalog' }],
    ),
    ...services.flatMap((service, index) =>
      registered.has(service)
        ? []
        : [{ pointer: `/service_whitelist/${index}`, code: 'unknown_service', message: 'is not a registered service' }],
    ),
    ...names.flatMap(name =>
      name.length <= MAX_FLAG_LENGTH && FLAG.test(name)
        ? []
        : [{ pointer: '/feature_flags', code: 'feature_flag_invalid', message: 'has a key that is no flag name' }],
    ),
    ...(names.length > MAX_FLAGS ? [{ pointer: '/feature_flags', code: 'too_many', message: `has more than ${MAX_FLAGS} flags` }] : []),
  ];
  if (faults.length > 0)
    throw ctx.problem('whitelist_invalid', {
      detail:
        'Use scopes of GET /v1/scopes/catalog, services of GET /v1/verticals/services, and flag names of a-z, 0-9, ".", "_" and "-"; errors says which are not.',
      extra: { errors: faults.slice(0, 10) },
    });
}

/** Only `open` lets people in without a group (G-SYS-08): a gate without one would be shut for good, or mistaken for open. */
export function requireGate(ctx: Ctx, { auth_mode: mode, auth_group: group }: { auth_mode: string; auth_group: string | null }): void {
  if (mode !== 'open' && group === null)
    throw ctx.problem('auth_group_required', {
      detail: `With auth_mode "${mode}" name the group in auth_group, or choose auth_mode "open".`,
      extra: { errors: [{ pointer: '/auth_group', code: 'required', message: 'is required' }] },
    });
}
