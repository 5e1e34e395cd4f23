import { FAMILY, RESERVED_FAMILIES } from '../../contract/schema/event.ts';

/** One stream: a family of one environment. */
export interface StreamRef {
  readonly env: string;
  readonly family: string;
}

/** Keys of one environment carry the hash tag `{env_id}`: in a cluster they are one slot, so scripts may join them. */
export const streamKey = ({ env, family }: StreamRef): string => `bus:{${env}}:${family}`;
/** The name answers show. */
export const shownStream = ({ env, family }: StreamRef): string => `bus:${env}:${family}`;
export const retryKey = (env: string): string => `busq:{${env}}:retry`;
export const deadLetterKey = (env: string): string => `busq:{${env}}:dlq`;
export const deadLetterBodiesKey = (env: string): string => `busq:{${env}}:dlq:bodies`;
/** What retention cut before a group had read it, by family and group. */
export const gapsKey = (env: string): string => `busq:{${env}}:gaps`;

/** Families that exist, and the environments each has a stream in. */
export const FAMILIES_KEY = 'bus:families';
export const environmentsKey = (family: string): string => `bus:envs:${family}`;
/** Environments with retries or dead letters. */
export const QUEUED_KEY = 'busq:envs';
/** Where each group of a family begins on streams it has not read yet. */
export const groupsKey = (family: string): string => `bus:groups:${family}`;
/** Groups that belong to one process, by the time they were last used. */
export const PROCESS_GROUPS_KEY = 'bus:groups.process';
/** `{run id of the store}:{time}`: what was appended before that time survives with this key. */
export const MARKER_KEY = 'bus:marker';
export const APPENDED_CHANNEL = 'bus:appended';

export const isFamily = (name: string): boolean => FAMILY.test(name) && !RESERVED_FAMILIES.has(name);
