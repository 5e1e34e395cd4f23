import { parseArgs } from 'node:util';

/** EX_USAGE of sysexits. */
const MISUNDERSTOOD = 64;

/** The running platform as a command on its machine may ask it: as the host, over mutual TLS, through every gate. */
export interface Operator {
  call<T>(
    service: string,
    method: 'GET' | 'POST',
    path: string,
    input?: { readonly query?: Readonly<Record<string, unknown>>; readonly body?: unknown },
  ): Promise<T>;
  /** The supervisor of this machine, over its socket: as the user who runs the command. A refusal is thrown with what it says. */
  control<T>(method: 'GET' | 'POST', path: string, body?: unknown): Promise<T>;
  /** A line of the answer. */
  print(line: string): void;
  /** How far long work is: shown beside the answer, never part of it. */
  progress(text: string): void;
}

/** A command of `platform` that a plugin brings: the default export of the module that its package.json names under `platform.commands`. */
export interface PlatformCommand {
  /** Whether it runs where no platform does; then it may ask nobody. */
  readonly offline?: boolean;
  /** What `--help` prints. */
  readonly usage: string;
  /** What `--help` prints after these other arguments, where that is less than all of it. */
  help?(args: readonly string[]): string;
  /** Answers the exit code: 0, 1 for a fault that was found, 64 for arguments nobody understands. */
  run(args: readonly string[], operator: Operator): Promise<number>;
}

/**
 * Arguments of a command: options with a value, `--name VALUE`, and the rest in order. Throws on one it does not know, which {@link
 * commandOf} answers.
 */
export function readArguments<const N extends string>(
  args: readonly string[],
  names: readonly N[],
): { readonly options: { readonly [K in N]?: string }; readonly rest: readonly string[] } {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: Object.fromEntries(names.map(name => [name, { type: 'string' } as const])),
    allowPositionals: true,
  });
  return { options: values as { readonly [K in N]?: string }, rest: positionals };
}

/**
 * A command from what it reads of its arguments and what it then does. What `read` throws at, or answers nothing to, is answered with the
 * usage and 64.
 */
export function commandOf<T>({
  usage,
  read,
  run,
}: {
  usage: string;
  read: (args: readonly string[]) => T | undefined;
  run: (asked: T, operator: Operator) => Promise<number>;
}): PlatformCommand {
  const understood = (args: readonly string[]): T | undefined => {
    try {
      return read(args);
    } catch {
      return undefined;
    }
  };
  return {
    usage,
    async run(args, operator) {
      const asked = understood(args);
      if (asked !== undefined) return run(asked, operator);
      operator.print(usage);
      return MISUNDERSTOOD;
    },
  };
}

/** Several commands under one name; the first argument says which. */
export function verbs(commands: Readonly<Record<string, PlatformCommand>>): PlatformCommand {
  const usage = Object.values(commands)
    .map(command => command.usage)
    .join('\n\n\n');
  const named = (verb: string) => (Object.hasOwn(commands, verb) ? commands[verb] : undefined);
  return {
    usage,
    help: ([verb = '']) => named(verb)?.usage ?? usage,
    async run([verb = '', ...args], operator) {
      const command = named(verb);
      if (command) return command.run(args, operator);
      operator.print(usage);
      return MISUNDERSTOOD;
    },
  };
}
