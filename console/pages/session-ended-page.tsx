/** The gateway closed the session while the console was open. */
export function SessionEndedPage({ loginUrl }: { loginUrl: string }) {
  return (
    <main className="alone">
      <div className="state">
        <h1>Your session has ended</h1>
        <p>You were signed out elsewhere, or the session reached its end.</p>
        <p>
          <a className="btn primary" href={loginUrl}>
            Sign in again
          </a>
        </p>
      </div>
    </main>
  );
}
