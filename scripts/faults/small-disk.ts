import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const BLOCK = Buffer.alloc(1_048_576);

/** A file system of a few hundred megabytes that can be filled to its last block. Only the superuser can make one. */
export class SmallDisk implements Disposable {
  readonly directory: string;

  constructor(megabytes: number) {
    if (process.getuid?.() !== 0) throw new Error('Only the superuser can mount a small disk; run this fault as root.');
    this.directory = mkdtempSync(join(tmpdir(), 'small-disk-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.directory]);
    chmodSync(this.directory, 0o711);
  }

  /** Takes every block that is left, until what it answers is disposed of. */
  fill(): Disposable {
    const path = join(this.directory, 'filler');
    const file = openSync(path, 'w');
    try {
      for (let size = BLOCK.length; size >= 512; ) {
        try {
          if (writeSync(file, BLOCK, 0, size) < size) size = Math.floor(size / 2);
        } catch (error) {
          if ((error as { code?: string }).code !== 'ENOSPC') throw error;
          size = Math.floor(size / 2);
        }
      }
    } finally {
      closeSync(file);
    }
    return { [Symbol.dispose]: () => rmSync(path, { force: true }) };
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['-l', this.directory]);
    rmdirSync(this.directory);
  }
}
