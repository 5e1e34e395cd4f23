import { Component, type ReactNode } from 'react';
import { Problem } from '../../api/gateway/problem.ts';
import { Broken } from './page-state.tsx';

/** A page that fails to render fails alone. */
export class ErrorBoundary extends Component<{ children: ReactNode; action(): string }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidCatch(error: Error) {
    // The shell's listener keeps it in the log ring.
    dispatchEvent(new ErrorEvent('error', { message: `render: ${error.message}` }));
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div className="page">
        <h1>This page failed</h1>
        <Broken problem={Problem.of(error, this.props.action())} retry={() => this.setState({ error: undefined })} />
      </div>
    );
  }
}
