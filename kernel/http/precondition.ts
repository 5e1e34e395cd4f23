import { kernelProblem } from '../base/kernel-problem.ts';

const compared = new WeakSet<readonly number[]>();

/** Versions that an `If-Match` names. A weak or foreign tag matches nothing (RFC 9110, 13.1.1); `*` takes whatever is there. */
export function versionsOf(header: string | undefined): readonly number[] | undefined {
  if (header === undefined || header.trim() === '*') return undefined;
  return header.split(',').flatMap(tag => {
    const version = /^"(\d{1,9})"$/.exec(tag.trim())?.[1];
    return version === undefined ? [] : [Number(version)];
  });
}

/** Refuses a change to another version than `If-Match` names, and notes that it was looked at. */
export function requireVersion(ifMatch: readonly number[] | undefined, version: number): void {
  if (ifMatch === undefined) return;
  noteCompared(ifMatch);
  if (!ifMatch.includes(version))
    throw kernelProblem('precondition_failed', { detail: 'Read it again and repeat the change.', headers: { etag: `"${version}"` } });
}

/** Another service compared them, under the lock of its row. */
export function noteCompared(ifMatch: readonly number[] | undefined): void {
  if (ifMatch !== undefined) compared.add(ifMatch);
}

/** Whether nobody looked at what a request named. */
export const isPassedOver = (ifMatch: readonly number[] | undefined): boolean => ifMatch !== undefined && !compared.has(ifMatch);
