export type ScimType = 'invalidFilter' | 'tooMany' | 'uniqueness' | 'mutability' | 'invalidSyntax' | 'invalidPath' | 'noTarget' | 'invalidValue' | 'invalidVers' | 'sensitive';

/** A refusal as SCIM clients read it (RFC 7644, 3.12). */
export class ScimError extends Error {
  readonly status: number;
  readonly scimType: ScimType | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, detail: string, scimType?: ScimType, headers: Readonly<Record<string, string>> = {}) {
    super(detail);
    this.name = 'ScimError';
    this.status = status;
    this.scimType = scimType;
    this.headers = headers;
  }

  get body(): object {
    return { schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'], status: String(this.status), ...(this.scimType ? { scimType: this.scimType } : {}), detail: this.message };
  }
}
