import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A line of a process's log: level, service, text and whatever the writer added. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly level: string; readonly service: string; readonly msg: string };

/** The log of a process, as it stands in its file. */
export const readLog = (dataDir: string, process: string): LogLine[] =>
  readFileSync(join(dataDir, 'logs', `${process}.log`), 'utf8')
    .split('\n')
    .flatMap(line => (line === '' ? [] : [JSON.parse(line) as LogLine]));
