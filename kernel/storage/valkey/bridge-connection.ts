export interface BridgeConnection {
  readonly input: Buffer[];
  offset: number;
  ended: boolean;
  /** False while so much output waits that the server should hold the rest itself, where its limits apply. */
  writable(): boolean;
  write(bytes: Buffer): void;
  consumed(bytes: number): void;
  destroy(): void;
}
