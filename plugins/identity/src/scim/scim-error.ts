import { ProblemError } from '@platform/sdk';

export type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue'
  | 'invalidVers'
  | 'sensitive';

/** A refusal as SCIM clients read it: by its status and `scimType` (RFC 7644, 3.12). */
export class ScimError extends ProblemError {
  constructor(status: number, detail: string, scimType?: ScimType, headers: Readonly<Record<string, string>> = {}) {
    super(
      'auth',
      'scim_refused',
      { status, title: 'The directory refuses this', retry: 'never' },
      { detail, extra: scimType ? { scimType } : {}, headers },
    );
  }
}
