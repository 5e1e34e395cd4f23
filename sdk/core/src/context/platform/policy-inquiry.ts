/** Questions about what a service would decide for others. */
export interface PolicyInquiry {
  readonly service: string;
  readonly envId: string;
  /** Answered in their order. `scopes` are the principal's effective ones in the environment. */
  readonly questions: readonly {
    readonly principal: { readonly kind: 'user' | 'workload'; readonly id: string; readonly scopes: readonly string[] };
    readonly action: string;
    readonly resource?: string;
  }[];
}
export interface ExplainedDecision {
  readonly effect: 'permit' | 'deny';
  readonly policy_set_id?: string;
  readonly policy_id?: string;
  readonly trace: readonly string[];
}
