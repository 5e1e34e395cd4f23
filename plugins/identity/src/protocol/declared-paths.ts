import { identity } from '../../contract/index.ts';

interface Template {
  readonly method: string;
  readonly shape: RegExp;
}

/** What the contract declares, less the doors that take whatever is left. */
const TEMPLATES: readonly Template[] = Object.values(identity.routes)
  .filter(({ path }) => !path.includes('{*'))
  .map(({ method, path }) => ({
    method,
    shape: new RegExp(`^${path.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{[a-z_]+\}/g, '[^/]+')}$`),
  }));
/** Trees in which everything is an API and nothing a page. */
const API = /^\/(?:v1|scim|oauth|mtls)(?:\/|$)/;

/** Methods that a path is declared with, where it is declared at all; HEAD goes with GET. */
export function methodsAt(path: string): readonly string[] {
  const methods = TEMPLATES.flatMap(({ method, shape }) => (shape.test(path) ? [method] : []));
  return [...new Set(methods.includes('GET') ? ['GET', 'HEAD', ...methods] : methods)];
}

/** Whether somebody who asks here reads JSON and not a page (RFC 9110 12.5.1). */
export const readsJson = (path: string, accept = ''): boolean =>
  API.test(path) || (/\bapplication\/(?:[a-z.+-]+\+)?json\b/.test(accept) && !/\btext\/html\b/.test(accept));
