/** A fault of storage that a person must act on: `code` is for machines, `fix` says what to do. */
export class StorageError extends Error {
  readonly code: string;
  readonly fix: string | undefined;

  constructor(code: string, message: string, more: { fix?: string; cause?: unknown } = {}) {
    super(
      more.fix === undefined ? message : `${message}\n  fix: ${more.fix}`,
      more.cause === undefined ? undefined : { cause: more.cause },
    );
    this.name = 'StorageError';
    this.code = code;
    this.fix = more.fix;
  }
}
