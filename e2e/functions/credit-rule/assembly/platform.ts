/** A line of the execution's record. */
@external("platform", "log")
declare function hostLog(pointer: usize, length: i32): void;

/** The host asks for room for what it gives. Every execution has a memory of its own: nothing is given back. */
export function alloc(length: i32): usize {
  return heap.alloc(length);
}

export function read(pointer: usize, length: i32): string {
  return String.UTF8.decodeUnsafe(pointer, length);
}

/** What a hook answers with. */
export function give(text: string): i64 {
  const bytes = String.UTF8.encode(text);
  return (i64(changetype<usize>(bytes)) << 32) | i64(bytes.byteLength);
}

export function log(line: string): void {
  const bytes = String.UTF8.encode(line);
  hostLog(changetype<usize>(bytes), bytes.byteLength);
}

/*
 * A call of the host is an import of its name; whoever executes the function says which path of the owning service answers it:
 *
 *   @external("platform", "score")
 *   declare function score(pointer: usize, length: i32): i64;
 *
 * It takes JSON as `give` makes it and answers like a hook: `read(<usize>(answer >> 32), <i32>answer)`.
 */
