/** What is signed about a chain: that it stood so, or that it begins behind here. */
export interface Statement {
  readonly kind: 'anchor' | 'cut';
  readonly env_id: string;
  readonly position: number;
  /** Position of the anchor before it: none can be taken out from between. */
  readonly previous: number;
  readonly audit_id: string;
  readonly hash: string;
  /** Milliseconds. */
  readonly at: number;
}

/** A signed statement as it is stored. */
export interface Signed extends Omit<Statement, 'kind'> {
  readonly key_id: string;
  readonly signature: string;
}

/** The very text that is signed. */
export const statementText = ({ kind, env_id, position, previous, audit_id, hash, at }: Statement): Buffer =>
  signedText(kind, env_id, position, previous, audit_id, hash, at);

/** Parts in lines; none of them has a line break of its own. The kind keeps statements of different meaning apart. */
export const signedText = (kind: string, ...parts: readonly (string | number)[]): Buffer =>
  Buffer.from(['platform audit', kind, ...parts].join('\n'));
