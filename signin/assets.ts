/** Where the identity service serves what `vite build signin` wrote to `signin/dist`. */
export const ASSETS_PREFIX = '/signin-assets/';

export interface Assets {
  readonly js: string;
  readonly css: string;
}

/** The hashed names, from `signin/dist/manifest.json`. */
export function assetsOf(manifest: Readonly<Record<string, { readonly file: string }>>): Assets {
  const file = (entry: string) => {
    const found = manifest[entry];
    if (!found) throw new Error(`signin/dist/manifest.json has no ${entry}: build it with "vite build signin".`);
    return ASSETS_PREFIX + found.file;
  };
  return { js: file('client/main.ts'), css: file('client/signin.css') };
}
