import type { ReactNode } from 'react';
import type { Problem } from '../../api/gateway/problem.ts';
import type { Loaded } from '../../shell/loading/use-loaded.ts';
import { CopyableCode } from '../value/copyable-code.tsx';
import { Icon, type IconName } from '../icon.tsx';

export function Loading({ label = 'Loading…' }: { label?: string }) {
  return (
    <div className="state loading" role="status">
      <span className="bars" aria-hidden="true">
        <i />
        <i />
        <i />
      </span>
      <span>{label}</span>
    </div>
  );
}

function State({ icon, tone, title, children }: { icon: IconName; tone?: string; title: string; children?: ReactNode }) {
  return (
    <div className="state" data-tone={tone} role={tone === 'bad' ? 'alert' : undefined}>
      <span className="state-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <State icon="box" title={title}>
      {children}
    </State>
  );
}

export function Denied({ detail }: { detail?: string | undefined }) {
  return (
    <State icon="lock" title="Not permitted">
      <p>{detail ?? 'Your account may not see this.'}</p>
    </State>
  );
}

export function Unavailable() {
  return (
    <State icon="clock" title="Not available yet">
      <p>The service behind this screen does not offer it in this build.</p>
    </State>
  );
}

export function Absent({ what }: { what: string }) {
  return (
    <div className="page">
      <h1>Not found</h1>
      <State icon="search" title={`${what} does not exist`}>
        <p>It may have been deleted, or the address is not right.</p>
        <p>
          <a className="btn" href="#/">
            Go to your organizations
          </a>
        </p>
      </State>
    </div>
  );
}

export function Broken({ problem, retry }: { problem: Problem; retry?: () => void }) {
  const ended = problem.status === 401;
  return (
    <State icon="alert" tone="bad" title={ended ? 'Your session is not accepted' : problem.title}>
      {problem.detail && problem.detail !== problem.title && <p>{problem.detail}</p>}
      {problem.correlationId && (
        <p className="sub">
          Correlation id <CopyableCode text={problem.correlationId} label="correlation id" />
        </p>
      )}
      <p className="row center">
        {retry && (
          <button type="button" className="btn" onClick={retry}>
            <Icon name="refresh" />
            Try again
          </button>
        )}
        {ended && (
          <a className="btn primary" href="#/sign-in">
            Sign in again
          </a>
        )}
      </p>
    </State>
  );
}

/** The right words for what was refused: 403 is never shown as an empty list. */
export function Refusal({ problem, retry, optional }: { problem: Problem; retry?: () => void; optional?: boolean | undefined }) {
  if (problem.denied) return <Denied detail={problem.detail} />;
  if (optional && problem.unavailable) return <Unavailable />;
  return <Broken problem={problem} {...(retry ? { retry } : {})} />;
}

interface LoadedViewProps<T> {
  of: Loaded<T>;
  /** 404 and 501 mean that the build does not have it. */
  optional?: boolean;
  children(data: T): ReactNode;
}

/** Loading, refused or there. Data that is there stays while it is asked for again; when that fails, it says that it may be old. */
export function LoadedView<T>({ of, optional, children }: LoadedViewProps<T>) {
  if (of.data !== undefined)
    return (
      <>
        {of.problem && (
          <p className="notice" data-tone="warn" role="status">
            This may be out of date, and is read again by itself: {of.problem.message}
          </p>
        )}
        {children(of.data)}
      </>
    );
  if (of.problem) return <Refusal problem={of.problem} retry={of.reload} optional={optional} />;
  return <Loading />;
}
