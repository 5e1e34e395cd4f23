/** What a request asks of the object that is there (RFC 9110, section 13). */
export interface Conditions {
  readonly ifMatch: string | null;
  readonly ifNoneMatch: string | null;
}

export const conditionsOf = (header: (name: string) => string | null | undefined): Conditions => ({
  ifMatch: header('if-match') ?? null,
  ifNoneMatch: header('if-none-match') ?? null,
});
export const etagOf = (sha256: string): string => `"${sha256}"`;

/** Whether a change may be made. `current` is the entity tag of what is there. */
export function allowsChange({ ifMatch, ifNoneMatch }: Conditions, current: string | undefined): boolean {
  if (ifMatch !== null && !(current !== undefined && names(ifMatch, current, false))) return false;
  return ifNoneMatch === null || !(current !== undefined && names(ifNoneMatch, current, true));
}

/** 200, or what else a read is answered with: 412, or 304 where the caller has it already. */
export function readStatus({ ifMatch, ifNoneMatch }: Conditions, current: string): 200 | 304 | 412 {
  if (ifMatch !== null && !names(ifMatch, current, false)) return 412;
  return ifNoneMatch !== null && names(ifNoneMatch, current, true) ? 304 : 200;
}

/** Whether a list of tags names one. A weak tag is as good only where the comparison is weak. */
function names(list: string, tag: string, weak: boolean): boolean {
  if (list.trim() === '*') return true;
  return list.split(',').some(each => (weak ? each.trim().replace(/^W\//, '') : each.trim()) === tag);
}
