/** Whether somebody looks at the page, and the moment when that changes. */
export interface Sight {
  visible(): boolean;
  watch(changed: () => void): () => void;
}

const PAUSES_S = [2, 5, 15, 30];
/** A service that asks for more patience than this is asked again all the same. */
const LONGEST_S = 120;
const SPREAD = 0.2;

const browserSight: Sight = {
  visible: () => document.visibilityState === 'visible',
  watch: changed => {
    document.addEventListener('visibilitychange', changed);
    return () => document.removeEventListener('visibilitychange', changed);
  },
};

interface RetryOptions {
  sight?: Sight;
  random?: () => number;
}

/**
 * Does something again after it failed: 2, 5, 15, then every 30 seconds, each a little off, so that consoles do not come together. A page
 * that nobody looks at waits until somebody does. Life: quiet → waiting → due → quiet; ended.
 */
export class Retry implements Disposable {
  readonly #run: () => void;
  readonly #sight: Sight;
  readonly #random: () => number;
  readonly #unwatch: () => void;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due = false;

  constructor(run: () => void, { sight = browserSight, random = Math.random }: RetryOptions = {}) {
    this.#run = run;
    this.#sight = sight;
    this.#random = random;
    this.#unwatch = sight.watch(() => this.#runIfDue());
  }

  /** It failed; `after` is how many seconds the other side asked to be left alone. */
  failed(after = 0): void {
    const pause = PAUSES_S[Math.min(this.#failures++, PAUSES_S.length - 1)] as number;
    const seconds = Math.max(Math.min(after, LONGEST_S), pause * (1 + SPREAD * (2 * this.#random() - 1)));
    this.#forget();
    this.#timer = setTimeout(() => {
      this.#due = true;
      this.#runIfDue();
    }, seconds * 1000);
  }

  /** It was done, or refused for good: nothing is left to try. */
  settled(): void {
    this.#failures = 0;
    this.#forget();
  }

  /** It is done now, no matter who asked for it. */
  begun(): void {
    this.#forget();
  }

  [Symbol.dispose](): void {
    this.#forget();
    this.#unwatch();
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#due = false;
  }

  #runIfDue(): void {
    if (!this.#due || !this.#sight.visible()) return;
    this.#due = false;
    this.#run();
  }
}
