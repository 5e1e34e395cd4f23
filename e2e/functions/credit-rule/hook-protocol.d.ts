/** What a hook is given and gives with `protocol: "hook"`, as JSON. With `"raw"` it is given the context alone and gives any JSON. */
export interface HookRequest<Context = Record<string, unknown>, Parameters = Record<string, unknown>> {
  readonly protocol: 'hook/1';
  readonly execution_id: string;
  readonly hook: string;
  readonly env_id: string;
  readonly domain: string;
  readonly product: string;
  readonly module_id: string;
  readonly context: Context;
  /** Those of the module, with those of the execution over them. */
  readonly parameters: Parameters;
}

export interface HookResponse {
  readonly decision: 'accept' | 'reject';
  /** At most 2,000 characters. */
  readonly reject_reason?: string;
  /** At most 100; the caller carries them out after the execution is recorded. */
  readonly directives?: readonly { readonly type: string; readonly [field: string]: unknown }[];
  readonly result?: unknown;
}
