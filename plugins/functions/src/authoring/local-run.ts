import { Value } from 'typebox/value';
import { HookResponse } from '../../contract/schema.ts';
import { Transpiler } from '../components/transpiler.ts';
import { type Attempt, attemptOf, inputOf } from '../execution/attempt.ts';
import type { CallRecord } from '../execution/host-calls.ts';
import { MAX_BYTES, MAX_CALLS } from '../execution/sizes.ts';
import { GuestPool } from '../isolation/guest-pool.ts';
import type { Program } from '../isolation/wire.mts';
import { PAGE_BYTES } from '../modules/inspection.ts';
import { Programs } from '../modules/programs.ts';

export interface Case {
  readonly hook: string;
  readonly protocol: 'raw' | 'hook';
  readonly context: object;
  readonly parameters: object;
  /** What the host answers to each call, by its name. */
  readonly calls: Readonly<Record<string, unknown>>;
  /** Of the execution that is tried again. */
  readonly origin?: Origin;
}
export interface LocalLimits {
  readonly fuel: number;
  readonly memoryMib: number;
  readonly timeoutMs: number;
}
export const LIMITS: LocalLimits = { fuel: 10_000_000, memoryMib: 64, timeoutMs: 2_000 };
const HEAP_MB = 128;
const CALL_FUEL = 1_000;
/** What a frame says of an execution. */
export interface Origin {
  readonly execution_id: string;
  readonly env_id: string;
  readonly domain: string;
  readonly product: string;
  readonly module_id: string;
}
/** Where there is no service to say it. */
const LOCAL: Origin = {
  execution_id: '00000000-0000-7000-8000-000000000000',
  env_id: '00000000-0000-7000-8000-000000000001',
  domain: 'local',
  product: 'local',
  module_id: '00000000-0000-7000-8000-000000000002',
};

/** Runs a module on the author's machine: metered as the service meters it, and in the same locked process. */
export class LocalRuns implements AsyncDisposable {
  readonly #pool: GuestPool;
  readonly #program: Program;
  readonly #limits: LocalLimits;

  private constructor(pool: GuestPool, program: Program, limits: LocalLimits) {
    [this.#pool, this.#program, this.#limits] = [pool, program, limits];
  }

  static async open(bytes: Uint8Array<ArrayBuffer>, limits: LocalLimits): Promise<LocalRuns> {
    const pages = Math.floor((limits.memoryMib * 1_048_576) / PAGE_BYTES);
    using transpiler = new Transpiler();
    const program = await new Programs(transpiler).make(bytes, pages);
    return new LocalRuns(new GuestPool({ processes: 1, pages, heapMb: HEAP_MB, log: () => undefined }), program, limits);
  }

  async run({ hook, protocol, context, parameters, calls: answers, origin = LOCAL }: Case): Promise<Attempt> {
    const calls: CallRecord[] = [];
    const { fuel, timeoutMs, memoryMib } = this.#limits;
    const outcome = await this.#pool.run({
      ...{ module: 'local', program: this.#program, hook, input: inputOf({ protocol, hook, context }, { ...origin, parameters }) },
      ...{ fuel, timeoutMs, maxOutput: MAX_BYTES, maxCalls: MAX_CALLS, pages: Math.floor((memoryMib * 1_048_576) / PAGE_BYTES) },
      call: async ({ name, body }) => {
        const known = Object.hasOwn(answers, name);
        calls.push({ name, path: `answered from the case: ${Buffer.from(body).toString().slice(0, 200)}`, status: known ? 200 : 0, ms: 0 });
        if (!known) return { fuel: CALL_FUEL };
        const answer = Buffer.from(JSON.stringify(answers[name]));
        return { body: answer, fuel: CALL_FUEL + ((body.length + answer.length) >> 4) };
      },
    });
    return attemptOf(outcome, calls, protocol === 'hook' ? value => Value.Check(HookResponse, value) : undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#pool[Symbol.asyncDispose]();
  }
}
