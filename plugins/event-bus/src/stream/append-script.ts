import { type Envelope, type Member, MEMBERS, shapeOf } from './entry.ts';
import { type StreamRef, streamKey } from './names.ts';

/** An event for its stream. */
export type Appended = StreamRef & { readonly envelope: Envelope };

/** Marks why a row was not appended; no id begins so. */
const FAULT = '!';

/**
 * ARGV: how many members differ from row to row, how many are the same, the names of those that differ, names and values of those that are
 * the same, then for every row the values of those that differ. Answers an id or a fault for each row.
 */
const APPEND = `
local differing, same = tonumber(ARGV[1]), tonumber(ARGV[2])
local fields, answers = {}, {}
for n = 1, differing do fields[2 * n - 1] = ARGV[2 + n] end
for n = 1, 2 * same do fields[2 * differing + n] = ARGV[2 + differing + n] end
for first = 3 + differing + 2 * same, #ARGV, differing do
  for n = 1, differing do fields[2 * n] = ARGV[first + n - 1] end
  local answer = redis.pcall('XADD', KEYS[1], '*', unpack(fields))
  answers[#answers + 1] = type(answer) == 'table' and '${FAULT}' .. answer.err or answer
end
return answers`;

/** Rows that go onto one stream with one command, as they have the same members. */
interface Run {
  readonly stream: string;
  readonly shape: number;
  readonly envelopes: Envelope[];
  readonly positions: number[];
}

/** Appends many rows with few commands: a command for each costs the client more than everything else about an event. */
export class AppendScript {
  readonly #runs: readonly Run[];

  constructor(rows: readonly Appended[]) {
    this.#runs = runsOf(rows);
  }

  get commands(): string[][] {
    return this.#runs.map(commandOf);
  }

  /** The id of every row, or why there is none, from what the commands were answered. */
  idsOf(answers: readonly unknown[]): (string | Error)[] {
    const ids: (string | Error)[] = [];
    for (const [index, { positions }] of this.#runs.entries()) {
      const answer = answers[index];
      for (const [n, position] of positions.entries())
        ids[position] = answer instanceof Error ? answer : idOf((answer as readonly string[])[n] as string);
    }
    return ids;
  }
}

const idOf = (answer: string): string | Error => (answer.startsWith(FAULT) ? new Error(answer.slice(FAULT.length)) : answer);

/** In their order on every stream. */
function runsOf(rows: readonly Appended[]): Run[] {
  const runs: Run[] = [];
  const open = new Map<string, Run>();
  let [last, stream]: [Appended | undefined, string] = [undefined, ''];
  for (const [position, row] of rows.entries()) {
    // Mostly they go where the one before went.
    if (row.env !== last?.env || row.family !== last.family) stream = streamKey(row);
    last = row;
    const { envelope } = row;
    const shape = shapeOf(envelope);
    let run = open.get(stream);
    if (run?.shape !== shape) {
      run = { stream, shape, envelopes: [], positions: [] };
      runs.push(run);
      open.set(stream, run);
    }
    run.envelopes.push(envelope);
    run.positions.push(position);
  }
  return runs;
}

function commandOf({ stream, shape, envelopes }: Run): string[] {
  const first = envelopes[0] as Envelope;
  const [shared, differing]: [Member[], Member[]] = [[], []];
  for (const [bit, member] of MEMBERS.entries()) {
    if ((shape & (1 << bit)) === 0) continue;
    // A key of its own has every row, so that there always is a member by which they are counted.
    (member.name !== 'idempotency_key' && isShared(member, envelopes, first) ? shared : differing).push(member);
  }
  const command = ['EVAL', APPEND, '1', stream, String(differing.length), String(shared.length)];
  for (const { name } of differing) command.push(name);
  for (const { name, read } of shared) command.push(name, read(first) as string);
  for (const envelope of envelopes) for (const { read } of differing) command.push(read(envelope) as string);
  return command;
}

function isShared({ read }: Member, envelopes: readonly Envelope[], first: Envelope): boolean {
  const value = read(first);
  return envelopes.every(envelope => read(envelope) === value);
}
