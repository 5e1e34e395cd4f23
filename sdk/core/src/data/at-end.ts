/** Statements it answers, not awaited yet, go out together with the commit; when one fails, nothing is committed. */
export type AtEnd = () => Promise<readonly PromiseLike<unknown>[] | undefined>;
