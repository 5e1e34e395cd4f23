import type { Persona } from '../persona.ts';

/** A persona as a handler sees it. */
export function callerOf(persona: Persona) {
  const base = {
    clientId: persona.kind === 'machine' ? persona.id : 'console',
    thumbprint: persona.kind === 'machine' ? 'test' : undefined,
    platformAdmin: persona.scopes.includes('sys:sys:admin'),
    bound: persona.kind === 'machine',
    sessionId: undefined,
  };
  if (persona.kind === 'machine')
    return {
      ...base,
      kind: 'machine' as const,
      userId: undefined,
      service: persona.id.split('-')[0] as string,
      subject: persona.id,
      envId: undefined,
      authEnvId: undefined,
      vertical: persona.vertical,
      email: undefined,
      emailVerified: false,
    };
  return {
    ...base,
    kind: persona.kind,
    userId: persona.id,
    service: persona.kind === 'delegated' ? 'bff' : undefined,
    subject: persona.kind === 'delegated' ? 'bff-delegator' : persona.id,
    envId: persona.envId,
    authEnvId: persona.envId,
    vertical: undefined,
    email: persona.email,
    emailVerified: true,
  };
}
