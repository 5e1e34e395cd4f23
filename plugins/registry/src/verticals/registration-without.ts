import type { Registration } from '../../contract/schema/service.ts';

/** A registration as if these services had never been in it. */
export function registrationWithout(registration: Registration, gone: ReadonlySet<string>): Registration {
  const stays = ({ service }: { service: string }) => !gone.has(service);
  const lost = new Set(registration.scopes.filter(each => !stays(each)).map(({ scope }) => scope));
  return {
    ...registration,
    services: registration.services.filter(stays),
    scopes: registration.scopes.filter(stays),
    error_codes: registration.error_codes.filter(stays),
    admin_scopes: registration.admin_scopes.filter(scope => !lost.has(scope)),
  };
}
