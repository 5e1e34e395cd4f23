/** The running platform as a command on its machine may ask it: as the host, over mutual TLS, through every gate. */
export interface Operator {
  call<T>(service: string, method: 'GET' | 'POST', path: string, input?: { readonly query?: Readonly<Record<string, unknown>>; readonly body?: unknown }): Promise<T>;
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
  /** Answers the exit code: 0, 1 for a fault that was found, 64 for arguments nobody understands. */
  run(args: readonly string[], operator: Operator): Promise<number>;
}
