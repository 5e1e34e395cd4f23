import { Problem } from '../../api/gateway/problem.ts';
import { Retry, type Sight } from './retry.ts';

/** What a screen shows of a reading: what was read last, and why there is nothing newer. */
export interface Shown<T> {
  readonly data: T | undefined;
  readonly problem: Problem | undefined;
  readonly loading: boolean;
}

interface ReadingOptions<T> {
  load(signal: AbortSignal): Promise<T>;
  show(shown: Shown<T>): void;
  sight?: Sight;
  random?: () => number;
}

/** A gateway that has not answered for so long never will. */
const DEADLINE_MS = 60_000;

/**
 * One thing on screen, read as often as asked. Readings never overlap, and asking during one leads to exactly one more: under a flood of
 * events each answer is shown. What was read stays on screen while it is read again, and when that fails for a while; then it is tried
 * again by itself, because nothing else may come that would do so. Life: new → (reading ⇄ shown)* → ended.
 */
export class Reading<T> implements Disposable {
  readonly #options: ReadingOptions<T>;
  readonly #retry: Retry;
  #shown: Shown<T> = { data: undefined, problem: undefined, loading: true };
  #running: AbortController | undefined;
  #again = false;
  #ended = false;

  constructor(options: ReadingOptions<T>) {
    this.#options = options;
    this.#retry = new Retry(() => this.read(), options);
  }

  read(): void {
    if (this.#ended) return;
    this.#again = this.#running !== undefined;
    if (!this.#again) void this.#read();
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#retry[Symbol.dispose]();
    this.#running?.abort();
  }

  async #read(): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    this.#retry.begun();
    this.#show({ ...this.#shown, loading: true });
    const shown = await this.#answer(running);
    this.#running = undefined;
    if (this.#ended) return;
    const again = this.#again;
    this.#again = false;
    this.#show({ ...shown, loading: again });
    if (again) return void this.#read();
    if (shown.problem?.passing) this.#retry.failed(shown.problem.retryAfter);
    else this.#retry.settled();
  }

  async #answer(running: AbortController): Promise<Omit<Shown<T>, 'loading'>> {
    const { promise: never, reject } = Promise.withResolvers<never>();
    const deadline = setTimeout(() => {
      reject(Problem.unreachable(''));
      running.abort();
    }, DEADLINE_MS);
    try {
      return { data: await Promise.race([this.#options.load(running.signal), never]), problem: undefined };
    } catch (error) {
      const problem = Problem.of(error);
      // A gateway that is away for a moment does not empty the screen; a refusal does.
      return { data: problem.passing ? this.#shown.data : undefined, problem };
    } finally {
      clearTimeout(deadline);
    }
  }

  #show(shown: Shown<T>): void {
    this.#shown = shown;
    this.#options.show(shown);
  }
}
