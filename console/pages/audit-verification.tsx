import { useEffect, useRef, useState } from 'react';
import type { AuditVerification } from '../api/audit-trail.ts';
import { Problem } from '../api/gateway/problem.ts';
import { useConsole } from '../shell/console-context.ts';
import { formatted } from '../widgets/value/format.ts';
import { Icon } from '../widgets/icon.tsx';

type State = { step?: AuditVerification; running: boolean; problem?: string };

/** Asks the registry to prove that the trail of an environment was not changed, and says what came of it. */
export function useAuditVerification(env: string) {
  const { audit, client } = useConsole();
  const [state, setState] = useState<State>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => {
    setState(undefined);
    return () => running.current?.abort();
  }, [env]);

  const verify = async () => {
    client.beginAction();
    running.current?.abort();
    const { signal } = (running.current = new AbortController());
    setState({ running: true });
    try {
      await audit.verify(env, step => setState({ step, running: step.next_cursor !== null }), signal);
    } catch (error) {
      if (!signal.aborted) setState({ running: false, problem: Problem.of(error).message });
    }
  };

  const button = (
    <button type="button" className="btn" disabled={state?.running ?? false} onClick={verify}>
      <Icon name="check" />
      {state?.running ? 'Verifying…' : 'Verify'}
    </button>
  );
  const result = (
    <div aria-live="polite" className={state ? undefined : 'hidden'}>
      {state && <Result {...state} />}
    </div>
  );
  return { button, result };
}

function Result({ step, running, problem }: State) {
  if (problem) {
    return (
      <p className="notice" data-tone="bad">
        The trail could not be verified: {problem}
      </p>
    );
  }
  if (!step || running) return <p className="notice">{step ? `${step.position} of ${step.head} events verified…` : 'Verifying…'}</p>;
  if (step.fault) {
    return (
      <p className="notice" data-tone="bad">
        <strong>The trail was changed at event {step.fault.position}.</strong> {step.fault.detail}
        {step.fault.audit_id && (
          <>
            {' '}
            <code>{step.fault.audit_id}</code>
          </>
        )}
      </p>
    );
  }
  return (
    <p className="notice" data-tone="ok">
      <strong>Nothing was changed.</strong> {step.position} {step.position === 1 ? 'event is' : 'events are'} as recorded and signed.
      {step.cut && ` Events up to ${step.cut.position} were past their time and removed on ${formatted(step.cut.cut_at, 'datetime')}.`}
      <br />
      <span className="sub">
        Signed with key <code>{step.key_id}</code>
        {step.witnessed && `, and as it was seen signed since ${formatted(step.witnessed.since, 'datetime')}`}
      </span>
    </p>
  );
}
