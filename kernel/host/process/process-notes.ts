import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { ProcessId } from '@platform/sdk';
import { isAlive, readRecord, writeRecord } from '../../storage/process-record.ts';

/** What the machine keeps of a process it started, so that who comes after finds it by pid and start time. */
export interface ProcessNote extends ProcessId {
  readonly service_type: string;
  readonly port: number;
  readonly release: string;
  readonly build: string;
  /** Of what it was told at its start: under other names and addresses it must not be kept. */
  readonly told: string;
}

/** One file for each living process, in a folder of the data directory. */
export class ProcessNotes {
  readonly #directory: string;

  constructor(dataDir: string) {
    this.#directory = join(dataDir, 'run', 'processes');
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
  }

  keep(note: ProcessNote): void {
    writeRecord(this.#path(note.pid), note);
  }

  drop({ pid }: ProcessId): void {
    rmSync(this.#path(pid), { force: true });
  }

  /** Those that still live; the notes of others are thrown away. */
  living(): ProcessNote[] {
    return readdirSync(this.#directory)
      .filter(name => name.endsWith('.json'))
      .flatMap(name => {
        const path = join(this.#directory, name);
        const note = readRecord<ProcessNote>(path);
        if (note !== null && isAlive(note)) return [note];
        rmSync(path, { force: true });
        return [];
      });
  }

  #path(pid: number): string {
    return join(this.#directory, `${pid}.json`);
  }
}
