/*
 * Imported before oidc-provider, which takes a Node without the label LTS for unsupported and says so on standard error at every start.
 * This Node came with the platform and the suite runs on it: the one line is dropped, and nothing else.
 */
const { warn } = console;
console.warn = (...said: unknown[]) => {
  if (typeof said[0] !== 'string' || !said[0].includes('oidc-provider WARNING: Unsupported runtime')) return warn(...said);
  console.warn = warn;
};
