/** What falls due at a moment of its own, one of each name. */
export class Deadlines<T> {
  readonly #due = new Map<string, { readonly at: number; readonly what: T }>();

  set(name: string, at: number, what: T): void {
    this.#due.set(name, { at, what });
  }

  delete(name: string): void {
    this.#due.delete(name);
  }

  /** Takes what has fallen due, for `act` to carry out: it may set new ones. */
  take(now: number, act: (name: string, what: T) => void): void {
    const fallen: [string, T][] = [];
    for (const [name, { at, what }] of this.#due) if (at <= now) fallen.push([name, what]);
    for (const [name, what] of fallen) {
      this.#due.delete(name);
      act(name, what);
    }
  }
}
