import { useEffect, useRef } from 'react';
import type { Problem } from '../../api/gateway/problem.ts';
import { CopyableCode } from '../value/copyable-code.tsx';

/** What stands in the way of the whole form; it takes the focus so that it is read at once. */
export function FormAlert({ problem, rest = [] }: { problem: Problem; rest?: readonly string[] }) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => element.current?.focus(), [problem]);
  return (
    <div ref={element} className="notice" data-tone="bad" role="alert" tabIndex={-1}>
      <strong>{problem.denied ? 'Not permitted' : problem.title}</strong>
      {problem.detail && problem.detail !== problem.title && <p>{problem.detail}</p>}
      {rest.length > 0 && (
        <ul>
          {rest.map(text => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {problem.correlationId && (
        <p className="sub">
          <CopyableCode text={problem.correlationId} label="correlation id" />
        </p>
      )}
    </div>
  );
}
