/**
 * A key that a service cannot do without, kept by the host: taken from what a setting says, which is the key itself (32 bytes in base64) or
 * a secret reference. Development makes one in a private file while no data rest on it; production refuses its absence; one that was lost,
 * or is another one, keeps the service from starting and is named.
 */
export interface KeyDecl {
  /** `seal`: a {@link SealedBox}. `seeds`: the secret itself, of one or more lines, read anew whenever it is asked for. */
  readonly use: 'seal' | 'seeds';
  readonly description: string;
  /** The setting; `PLATFORM_{ID}_{NAME}_KEY_REF` (a vertical's name in place of the platform's) when absent. */
  readonly documented?: string;
  /**
   * Of a key that seals: the setting of those that came before, separated by commas, which only open; the setting's name with `_PREVIOUS`
   * when absent.
   */
  readonly previous?: string;
  /** The development key's file; `{id}-{name}.key` when absent. */
  readonly file?: string;
}

/** A key of the use `seeds`: its text, as it is now. Its reader wipes it. */
export interface KeySeeds {
  read(): Promise<Uint8Array | undefined>;
}
