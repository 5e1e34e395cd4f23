import type { Readable } from 'node:stream';

/** Bytes that came whole and were checked, in a file of this machine. */
export interface Received {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
}
/** First and last byte, both included. */
export interface Span {
  readonly start: number;
  readonly end: number;
}
export interface StoredBlob {
  readonly blobId: string;
  readonly size: number;
  readonly modifiedAt: number;
}

/** Where bytes are. An id is written once; the bytes stand on disk, or with the provider, before `keep` answers. */
export interface Blobs {
  readonly kind: 'files' | 's3';
  /** Takes the file over. */
  keep(blobId: string, received: Received): Promise<void>;
  /** `undefined` where there are none under this id. */
  open(blobId: string, span: Span | undefined, signal?: AbortSignal): Promise<Readable | undefined>;
  delete(blobId: string): Promise<void>;
  list(signal: AbortSignal): AsyncIterable<StoredBlob>;
}
