import { closeSync, fdatasync, openSync, readdirSync, readFileSync, rmSync, statSync, write, writeSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { readSnapshotPlace, type SnapshotPlace } from '../snapshot-place.ts';
import { wholeCommands } from '../whole-commands.ts';

const [writeTo, syncData] = [promisify(write), promisify(fdatasync)];
const NAME = /^journal\.([0-9a-f]{40})\.(\d+)$/;
/** What arrives so close together is one write: a kill loses as much. */
const GATHER_MS = 20;
/** More than this waits for the disk, and the writer waits with it. */
const MAX_WAITING = 64 * 1024 * 1024;

interface JournalFile {
  readonly path: string;
  readonly id: string;
  readonly start: number;
}

/** What was written after the snapshot of a directory, as whole commands, and the database they begin in. */
export interface Remainder {
  readonly db: number;
  readonly commands: Buffer;
  /** Bytes behind the last whole command, which are left out. */
  readonly cut: number;
}

/**
 * The writes since the last snapshot, in a file named after the place in the stream where it begins. A snapshot carries its own place, so
 * that which of both comes first on disk makes no difference: what a snapshot holds is never applied to it again.
 */
export class Journal {
  readonly #directory: string;
  #file: number | undefined;
  #path = '';
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  #gathering: NodeJS.Timeout | undefined;
  #dirty = false;
  #size = 0;
  /** Every write has its place: one that is under way and one at the end of the process may pass each other. */
  #at = 0;
  #failure: unknown;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Bytes since the snapshot. */
  get size(): number {
    return this.#size;
  }

  /** Why the disk took no more; the next {@link begin} starts anew. */
  get failure(): unknown {
    return this.#failure;
  }

  /** What the snapshot does not hold; `undefined` where it holds everything, or its journal is lost. */
  remainder(snapshot: string): Remainder | undefined {
    const place = readSnapshotPlace(snapshot);
    if (place === undefined) return undefined;
    const file = this.#files()
      .filter(({ id, start }) => id === place.id && start <= place.offset)
      .sort((left, right) => right.start - left.start)[0];
    if (file === undefined) return undefined;
    const bytes = readFileSync(file.path).subarray(place.offset - file.start);
    const whole = wholeCommands(bytes);
    return bytes.length === 0 ? undefined : { db: place.db, commands: bytes.subarray(0, whole), cut: bytes.length - whole };
  }

  /** Begins the file behind a snapshot with what the stream has said since; the files before are not needed any more. */
  begin({ id, offset }: SnapshotPlace, since: readonly Buffer[]): void {
    const path = join(this.#directory, `journal.${id}.${offset}`);
    if (path === this.#path && this.#failure === undefined) return;
    const [before, underWay] = [this.#file, this.#writing];
    // What is still on its way to the old file is in the snapshot, or in `since`.
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#file = openSync(path, 'w', 0o600);
    this.#path = path;
    this.#size = this.#at = 0;
    this.#failure = undefined;
    for (const bytes of since) this.append(bytes);
    if (before !== undefined) void underWay.then(() => closeSync(before));
    for (const file of this.#files()) if (file.path !== path) rmSync(file.path, { force: true });
  }

  /** Takes bytes of the stream; they are with the operating system a moment later. */
  append(bytes: Buffer): void {
    this.#size += bytes.length;
    if (this.#file === undefined || this.#failure !== undefined) return;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MAX_WAITING) this.flush();
    else this.#gathering ??= setTimeout(() => this.#handOver(), GATHER_MS).unref();
  }

  /** Puts everything on the disk itself, so that a power failure finds it. */
  async sync(): Promise<void> {
    await this.#handOver();
    if (!this.#dirty || this.#file === undefined) return;
    this.#dirty = false;
    await syncData(this.#file).catch((error: unknown) => (this.#failure ??= error));
  }

  /** Hands over what waits, at once: the process is about to end. */
  flush(): void {
    const [file, bytes, start] = this.#take();
    if (file === undefined || bytes.length === 0) return;
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, start + done);
      this.#dirty = true;
    } catch (error) {
      this.#failure ??= error;
    }
  }

  close(): void {
    this.flush();
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #handOver(): Promise<void> {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    this.#writing = this.#writing.then(() => this.#drain());
    return this.#writing;
  }

  async #drain(): Promise<void> {
    const [file, bytes, start] = this.#take();
    if (file === undefined || bytes.length === 0) return;
    try {
      for (let done = 0; done < bytes.length; ) done += (await writeTo(file, bytes, done, bytes.length - done, start + done)).bytesWritten;
      this.#dirty = true;
    } catch (error) {
      if (file === this.#file) this.#failure ??= error;
    }
  }

  #take(): [file: number | undefined, bytes: Buffer, start: number] {
    const [bytes, start] = [Buffer.concat(this.#waiting.splice(0)), this.#at];
    this.#waitingBytes = 0;
    this.#at += bytes.length;
    return [this.#file, bytes, start];
  }

  #files(): JournalFile[] {
    return readdirSync(this.#directory).flatMap(name => {
      const [, id, start] = NAME.exec(name) ?? [];
      return id === undefined ? [] : [{ path: join(this.#directory, name), id, start: Number(start) }];
    });
  }
}

export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
