import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';

/**
 * Writes a file of mode 0600 so that a crash leaves the old or the new content, never half: beside it, flushed, renamed (G-ACME-01). A
 * failure leaves nothing beside it.
 */
export const replaceFile = (path: string, content: string): Promise<void> => replaceFiles([[path, content]]);

/** Several files, each whole or not at all; they take their places in this order. */
export async function replaceFiles(files: readonly (readonly [path: string, content: string])[]): Promise<void> {
  const written = files.map(([path, content]) => ({ path, content, temporary: `${path}.${randomUUID()}.tmp` }));
  try {
    await Promise.all(written.map(({ temporary, content }) => writeFlushed(temporary, content)));
    for (const { temporary, path } of written) await rename(temporary, path);
  } catch (error) {
    await Promise.all(written.map(({ temporary }) => rm(temporary, { force: true })));
    throw error;
  }
}

async function writeFlushed(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.datasync();
  } finally {
    await file.close();
  }
}
