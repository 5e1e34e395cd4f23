const KEY = 'platform.correlation';

/** One id for the browsing session, the only thing these pages store. */
export function correlation(storage: Storage = sessionStorage): string {
  try {
    const kept = storage.getItem(KEY);
    if (kept) return kept;
    const fresh = `sgn-${crypto.randomUUID()}`;
    storage.setItem(KEY, fresh);
    return fresh;
  } catch {
    return `sgn-${crypto.randomUUID()}`;
  }
}
