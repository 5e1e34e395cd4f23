import { useState } from 'react';
import type { Action } from '../api/page-def.ts';
import { Problem } from '../api/gateway/problem.ts';
import { useConsole } from '../shell/console-context.ts';
import { ConfirmDialog } from './dialog/confirm-dialog.tsx';
import { Dialog } from './dialog/dialog.tsx';
import { Form } from './form/form.tsx';
import { usePageHost } from './page/page-host.ts';
import { fillText, type TemplateScope } from './page/template.ts';
import { Value } from './value/value.tsx';

interface ActionButtonProps {
  action: Action;
  scope: TemplateScope;
  className?: string;
  /** Runs in place of the single call, for a selection. */
  runAll?: () => Promise<string>;
}

/** A control that asks what it must (a form, a confirmation) and then makes the call. */
export function ActionButton({ action, scope, className = 'btn', runAll }: ActionButtonProps) {
  const host = usePageHost();
  const { notify } = useConsole();
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const [shown, setShown] = useState<{ answer: unknown }>();
  if (!host.may(action)) return null;
  const question = action.confirm && fillText(action.confirm, scope);

  const run = async (form?: Record<string, unknown>) => {
    const filled = form ? { ...scope, form } : scope;
    const text = runAll ? await runAll() : undefined;
    const answer = runAll ? undefined : await host.run(action, filled);
    setAsking(false);
    if (action.then === 'show') setShown({ answer });
    host.settle(action, filled, text);
  };
  const press = async () => {
    if (action.form?.length || action.confirm) return setAsking(true);
    setBusy(true);
    try {
      await run();
    } catch (error) {
      const problem = Problem.of(error);
      notify(`${action.label}: ${problem.denied ? 'not permitted' : problem.message} (${problem.correlationId})`, 'bad');
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" className={className} data-tone={action.tone} disabled={busy} onClick={press}>
        {busy ? 'Working…' : action.label}
      </button>
      {asking && action.form?.length ? (
        <Dialog title={action.label} close={() => setAsking(false)}>
          {question && <p>{question}</p>}
          <Form fields={action.form} initial={scope.row} submitLabel={action.label} tone={action.tone} submit={run} />
        </Dialog>
      ) : asking && question ? (
        <ConfirmDialog
          title={action.label}
          text={question}
          label={action.label}
          tone={action.tone}
          run={() => run()}
          close={() => setAsking(false)}
        />
      ) : null}
      {shown && (
        <Dialog title={action.label} close={() => setShown(undefined)} wide>
          <Value value={shown.answer} format="json" />
        </Dialog>
      )}
    </>
  );
}
