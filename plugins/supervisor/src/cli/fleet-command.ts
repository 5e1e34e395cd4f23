import { parseArgs } from 'node:util';
import type { Operator, PlatformCommand } from '@platform/sdk';
import type { Instance } from '../../contract/schema/instance.ts';

/** What a command was called with: words, and whether a program reads the answer. */
export interface Called {
  readonly words: readonly string[];
  readonly json: boolean;
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
}

const UNDERSTOOD_NOT = 64;

/** A command of the fleet: `run` prints for people, or answers what `--json` prints. */
export function fleetCommand(
  usage: string,
  options: Readonly<Record<string, { type: 'string' | 'boolean'; short?: string }>>,
  words: readonly [least: number, most: number],
  run: (
    called: Called,
    operator: Operator,
  ) => Promise<{ readonly value: unknown; readonly lines: readonly string[]; readonly code?: number }>,
): PlatformCommand {
  return {
    usage,
    async run(args, operator) {
      let called: Called;
      try {
        const { values, positionals } = parseArgs({
          args: [...args],
          options: { ...options, json: { type: 'boolean' } },
          allowPositionals: true,
        });
        if (positionals.length < words[0] || positionals.length > words[1]) throw new Error('words');
        called = { words: positionals, json: values['json'] === true, options: values as Called['options'] };
      } catch {
        operator.print(usage);
        return UNDERSTOOD_NOT;
      }
      const { value, lines, code = 0 } = await run(called, operator);
      if (called.json) operator.print(JSON.stringify(value));
      else for (const line of lines) operator.print(line);
      return code;
    },
  };
}

/** Rows as columns of equal width. */
export function columns(rows: readonly (readonly (string | number)[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, String(cell).length);
  return rows.map(row =>
    row
      .map((cell, at) => String(cell).padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

export const instances = async (operator: Operator): Promise<Instance[]> =>
  (await operator.control<{ items: Instance[] }>('GET', '/v1/captain/services')).items;

/** Every instance that a word names: by its key, or by its service. Throws where there is none. */
export async function named(operator: Operator, word: string): Promise<Instance[]> {
  const found = (await instances(operator)).filter(
    ({ instance_key, service_type, status }) =>
      (instance_key === word || service_type === word) && status !== 'Killed' && status !== 'Stopped',
  );
  if (found.length === 0) throw new Error(`No instance is called ${word}. \`platform services\` lists them.`);
  return found;
}

/** Has every instance that the word names do something, or the first one where it is about the service; says what was begun. */
export async function act(operator: Operator, word: string, action: string, body: object, { first = false } = {}) {
  const begun = [];
  const found = await named(operator, word);
  for (const { instance_key, service_type } of first ? found.slice(0, 1) : found) {
    const answer = await operator.control<{ operation_id: string }>(
      'POST',
      `/v1/captain/services/${encodeURIComponent(instance_key)}/${action}`,
      body,
    );
    begun.push({ service_type, instance_key, ...answer });
  }
  return {
    value: begun,
    lines: begun.map(
      ({ service_type, instance_key, operation_id }) => `${action} of ${service_type} ${instance_key} is under way (${operation_id})`,
    ),
  };
}
