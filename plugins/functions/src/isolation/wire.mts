/** What the service and a locked process say to each other. */
export interface Load {
  readonly type: 'load';
  readonly module: string;
  readonly program: Program;
}
/** A metered module; or a component as code and the metered modules that it names. */
export type Program = { readonly kind: 'core'; readonly bytes: Uint8Array } | ComponentCode;
export interface ComponentCode {
  readonly kind: 'component';
  readonly glue: string;
  readonly cores: readonly (readonly [name: string, bytes: Uint8Array])[];
  /** What is to be offered to it. */
  readonly imports: readonly string[];
}
export interface Run {
  readonly type: 'run';
  readonly id: number;
  readonly module: string;
  readonly hook: string;
  readonly input: Uint8Array;
  readonly fuel: number;
  readonly maxOutput: number;
  readonly maxCalls: number;
  /** Pages that its memory may have. */
  readonly pages: number;
}
/** The answer to a guest's call, or why it gets none; `fuel` is what the call costs. */
export interface Answer {
  readonly type: 'answer';
  readonly id: number;
  readonly number: number;
  readonly body?: Uint8Array;
  readonly fuel: number;
}
export interface Cancel {
  readonly type: 'cancel';
  readonly id: number;
}
export interface Forget {
  readonly type: 'forget';
  readonly module: string;
}
export type ToGuest = Load | Run | Answer | Cancel | Forget;

export type FaultCode = 'fuel_exhausted' | 'memory_exceeded' | 'trap' | 'callback_failed';
export interface Done {
  readonly type: 'done';
  readonly id: number;
  readonly output?: Uint8Array;
  readonly fault?: { readonly code: FaultCode; readonly detail: string };
  readonly fuelUsed: number;
  readonly memoryBytes: number;
  readonly logs: readonly string[];
  readonly compileMs: number;
}
export interface Call {
  readonly type: 'call';
  readonly id: number;
  readonly number: number;
  readonly name: string;
  readonly body: Uint8Array;
}
/** The process does not have the module any more, or yet. */
export interface Missing {
  readonly type: 'missing';
  readonly id: number;
}
export interface Ready {
  readonly type: 'ready';
}
export type FromGuest = Done | Call | Missing | Ready;

/** File of the process on which it notes, before it enters a guest, which execution that is. */
export const MARK_FD = 4;

/** A component to be made a program of, with the names of what goes in and out. */
export interface TranspileOrder {
  readonly component: Uint8Array;
  readonly imports: string[];
  readonly exports: string[];
}
export type Transpiled = { readonly files: [name: string, content: Uint8Array][] } | { readonly fault: string };
