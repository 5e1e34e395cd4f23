import { readFileSync, statSync } from 'node:fs';
import { commandOf, readArguments } from '@platform/sdk';
import type { ExecutionDetail } from '../../contract/schema.ts';
import type { Attempt } from '../execution/attempt.ts';
import { FunctionFolder, inspected, readJson } from './function-folder.ts';
import { type Case, LIMITS, type LocalLimits, LocalRuns, type Origin } from './local-run.ts';

const USAGE = `platform func run [FOLDER | FILE.wasm]

  Runs a hook once on this machine, metered and locked in as the service runs it, and prints what came of it with its fuel and memory.
  FOLDER is one that \`platform func new\` wrote (here when absent) and is built; FILE.wasm is any module or component.
    --hook NAME       the first of function.json when absent; \`hook\` for a file
    --context FILE    JSON that goes in; of a file in tests/ its context, calls and parameters. {} when absent
    --protocol NAME   raw or hook
    --calls FILE      what the host answers: { "call": answer, ... }
    --replay FILE     a recorded execution as GET /v1/executions/{id} answers it: runs its input again and compares
    --fuel N          ${LIMITS.fuel} when absent
    --memory MIB      ${LIMITS.memoryMib} when absent
    --timeout MS      ${LIMITS.timeoutMs} when absent
  The exit code is 1 when the execution fails, or with --replay when it does not end as it was recorded.`;

type Recorded = Pick<ExecutionDetail, 'hook' | 'status' | 'code' | 'fuel_used' | keyof Origin> & {
  readonly request: { context: object; parameters?: object; protocol?: 'raw' | 'hook' };
};
interface Asked {
  readonly target: string;
  readonly options: Readonly<Partial<Record<(typeof OPTIONS)[number], string>>>;
}
const OPTIONS = ['hook', 'context', 'protocol', 'calls', 'replay', 'fuel', 'memory', 'timeout'] as const;

export default commandOf<Asked>({
  usage: USAGE,
  read: args => {
    const { options, rest } = readArguments(args, OPTIONS);
    const numbers = [options.fuel, options.memory, options.timeout].every(each => each === undefined || /^[1-9]\d{0,9}$/.test(each));
    const protocol = options.protocol === undefined || options.protocol === 'raw' || options.protocol === 'hook';
    return rest.length <= 1 && numbers && protocol ? { target: rest[0] ?? '.', options } : undefined;
  },
  run: async ({ target, options }, { print }) => {
    const folder = statSync(target, { throwIfNoEntry: false })?.isFile() ? undefined : new FunctionFolder(target);
    const recorded = options.replay === undefined ? undefined : (readJson(options.replay) as Recorded);
    const asked = caseOf(folder, recorded, options);
    const limits: LocalLimits = {
      fuel: Number(options.fuel ?? LIMITS.fuel),
      memoryMib: Number(options.memory ?? LIMITS.memoryMib),
      timeoutMs: Number(options.timeout ?? LIMITS.timeoutMs),
    };
    const bytes = folder?.module() ?? Uint8Array.from(readFileSync(target));
    inspected(bytes, [asked.hook]);
    await using runs = await LocalRuns.open(bytes, limits);
    const attempt = await runs.run(asked);
    for (const line of told(attempt, limits)) print(line);
    if (!recorded) return attempt.ok ? 0 : 1;
    const same = attempt.ok === (recorded.status === 'completed') && (attempt.ok || attempt.code === recorded.code);
    print(
      `recorded  ${recorded.status === 'completed' ? 'completed' : recorded.code} with ${recorded.fuel_used} fuel: ${
        same ? 'the same' : 'another end'
      }`,
    );
    return same ? 0 : 1;
  },
});

function caseOf(folder: FunctionFolder | undefined, recorded: Recorded | undefined, options: Asked['options']): Case {
  if (recorded && typeof recorded.request?.context !== 'object')
    throw new Error(`${options.replay} is no recorded execution: it has no request with a context.`);
  const given = options.context === undefined ? {} : (readJson(options.context) as { context?: object; expect?: object } & Partial<Case>);
  // A file of tests/ says more than the context.
  const file = 'context' in given && 'expect' in given ? given : { context: given };
  return {
    hook: options.hook ?? recorded?.hook ?? file.hook ?? folder?.hooks[0] ?? 'hook',
    protocol:
      (options.protocol as Case['protocol'] | undefined) ??
      (recorded ? (recorded.request.protocol ?? 'raw') : (file.protocol ?? folder?.protocol ?? 'raw')),
    context: recorded?.request.context ?? file.context ?? {},
    parameters: { ...folder?.parameters, ...file.parameters, ...recorded?.request.parameters },
    calls: options.calls === undefined ? (file.calls ?? {}) : (readJson(options.calls) as Case['calls']),
    ...(recorded?.execution_id ? { origin: recorded } : {}),
  };
}

function told(attempt: Attempt, limits: LocalLimits): string[] {
  const { ok, code, detail, decision, rejectReason, directives, result, fuelUsed, memoryBytes, durationMs, logs, calls } = attempt;
  return [
    ok ? 'completed' : `${code}: ${detail}`,
    ...(decision ? [`decision  ${decision}${rejectReason === undefined ? '' : `: ${rejectReason}`}`] : []),
    ...(directives ?? []).map(each => `directive ${JSON.stringify(each)}`),
    ...(ok ? [`result    ${JSON.stringify(result)}`] : []),
    `fuel      ${fuelUsed} of ${limits.fuel}`,
    `memory    ${memoryBytes} bytes of ${limits.memoryMib * 1_048_576}`,
    `time      ${durationMs} ms with the start of its process`,
    ...calls.map(({ name, path, status }) => `call      ${name} ${path}${status === 0 ? '; no answer is given for it' : ''}`),
    ...logs.map(line => `log       ${line}`),
  ];
}
