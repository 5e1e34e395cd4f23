import { createHash } from 'node:crypto';
import type { ProblemBody } from '@platform/sdk';

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; background: Canvas; color: CanvasText; }
main { max-width: 32rem; padding: 2rem; }
a { color: LinkText; }
a:focus-visible { outline: 3px solid Highlight; outline-offset: 3px; }
small { overflow-wrap: anywhere; }`;
const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** What a person sees when a sign-in fails: what happened, and the way on. */
export function failurePage(problem: ProblemBody, { appOrigin }: { appOrigin: string }): { body: string; headers: Record<string, string> } {
  const body = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(problem.title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escaped(problem.title)}</h1>
<p>You are not signed in.${problem.detail ? ` ${escaped(problem.detail)}` : ''}</p>
<p><a href="/auth/login">Sign in again</a> or <a href="${escaped(appOrigin)}">go back to the application</a>.</p>
<p><small>Code ${escaped(problem.code)}, reference ${escaped(problem.correlation_id ?? '')}</small></p>
</main>
</body>
</html>
`;
  return {
    body,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': POLICY,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    },
  };
}
