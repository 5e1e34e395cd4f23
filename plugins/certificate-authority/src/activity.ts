import type { Accounts } from './acme/accounts.ts';
import type { Orders } from './acme/orders.ts';
import type { CertificateStore } from './certificates/certificate-store.ts';
import type { Ctx } from './context.ts';
import type { Issuance } from './issuance/issuance.ts';

const MINUTES = 60;
const MINUTE_MS = 60_000;

interface Minute {
  readonly at: number;
  minted: number;
  shed: number;
}

/** What the authority does, for its overview: figures now, and mints and sheds of each of the last sixty minutes. */
export class Activity {
  readonly #ctx: Ctx;
  readonly #parts: { readonly accounts: Accounts; readonly orders: Orders; readonly store: CertificateStore; readonly issuance: Issuance };
  readonly #minutes: Minute[] = [];
  #seen = { minted: 0, shed: 0 };

  constructor(ctx: Ctx, parts: { accounts: Accounts; orders: Orders; store: CertificateStore; issuance: Issuance }) {
    this.#ctx = ctx;
    this.#parts = parts;
  }

  /** Books what happened since the last look into the minute it belongs to. */
  book(): void {
    const { minted, shed } = this.#parts.issuance.figures;
    const at = Math.floor(this.#ctx.clock.now().getTime() / MINUTE_MS);
    let minute = this.#minutes.at(-1);
    if (minute?.at !== at) {
      minute = { at, minted: 0, shed: 0 };
      this.#minutes.push(minute);
      while ((this.#minutes[0] as Minute).at <= at - MINUTES) this.#minutes.shift();
    }
    minute.minted += minted - this.#seen.minted;
    minute.shed += shed - this.#seen.shed;
    this.#seen = { minted, shed };
  }

  figures() {
    this.book();
    const { accounts, orders, store, issuance } = this.#parts;
    const now = this.#ctx.clock.now().getTime();
    let [valid, revoked, expiring] = [0, 0, 0];
    for (const meta of store.all()) {
      const left = Date.parse(meta.not_after) - now;
      if (left <= 0) continue;
      if (meta.revoked) revoked += 1;
      else {
        valid += 1;
        if (left < (Date.parse(meta.not_after) - Date.parse(meta.not_before)) / 4) expiring += 1;
      }
    }
    const { in_flight, queued, minted, shed } = issuance.figures;
    return {
      certificates: store.count,
      valid,
      revoked,
      expiring,
      accounts: accounts.count,
      orders: orders.count,
      in_flight,
      queued,
      minted,
      shed,
    };
  }

  minutes() {
    this.book();
    const counted = new Map(this.#minutes.map(minute => [minute.at, minute]));
    const last = Math.floor(this.#ctx.clock.now().getTime() / MINUTE_MS);
    const items = Array.from({ length: MINUTES }, (_, index) => {
      const at = last - MINUTES + 1 + index;
      return { minute: new Date(at * MINUTE_MS).toISOString(), minted: counted.get(at)?.minted ?? 0, shed: counted.get(at)?.shed ?? 0 };
    });
    return { items };
  }
}
