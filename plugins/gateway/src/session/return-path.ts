const LONGEST = 2_048;

/** A path inside the application, fragment and query included, or `undefined` for anything a browser could read as another place. */
export function returnPath(given: string | null, appOrigin: string): string | undefined {
  const path = given ?? '/';
  if (path.length > LONGEST || !/^\/(?![/\\])/.test(path) || /[\\\u0000-\u001f\u007f]/.test(path)) return undefined;
  try {
    const url = new URL(path, appOrigin);
    return url.origin === new URL(appOrigin).origin && !url.pathname.startsWith('//')
      ? `${url.pathname}${url.search}${url.hash}`
      : undefined;
  } catch {
    return undefined;
  }
}
