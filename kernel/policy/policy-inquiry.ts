import type { Caller, ExplainedDecision, Logger, PolicyInquiry } from '@platform/sdk';
import { canonicalScope } from '../identity/tokens/scope-name.ts';
import type { Decision, PolicySnapshot } from './policy-data.ts';
import { PolicyEngine } from './policy-engine.ts';

/**
 * Decides for others over the policies of any service. They are read and compiled once for all questions of an inquiry, and let go after
 * it.
 */
export async function inquire(
  { service, envId, questions }: PolicyInquiry,
  { load, log, correlationId }: { load: (service: string, envId: string) => Promise<PolicySnapshot>; log: Logger; correlationId: string },
): Promise<readonly (Decision & ExplainedDecision)[]> {
  using engine = new PolicyEngine({ service, log, load: env => load(service, env), bootstrapEnvs: new Set() });
  const answers: (Decision & ExplainedDecision)[] = [];
  for (const { principal, action, resource } of questions) {
    const { kind, id } = principal;
    const caller = (kind === 'user' ? { kind, userId: id, subject: id } : { kind: 'machine', subject: id }) as Caller;
    const [type, resourceId] = resource ? splitOnce(resource) : [];
    answers.push(
      await engine.explain({
        identity: { caller, principal: kind === 'user' ? 'user' : 'machine', scopes: new Set(principal.scopes) },
        action: canonicalScope(action),
        envId,
        resource: type && resourceId ? { type, id: resourceId } : undefined,
        correlationId,
      }),
    );
  }
  return answers;
}

export function splitOnce(text: string): [string, string] {
  const at = text.indexOf(':');
  return [text.slice(0, at), text.slice(at + 1)];
}
