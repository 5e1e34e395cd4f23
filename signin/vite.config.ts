import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  root: here('.'),
  base: '/signin-assets/',
  publicDir: false,
  build: {
    outDir: 'dist',
    assetsDir: '',
    emptyOutDir: true,
    manifest: 'manifest.json',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    modulePreload: { polyfill: false },
    rolldownOptions: { input: { signin: here('client/main.ts'), style: here('client/signin.css') } },
  },
});
