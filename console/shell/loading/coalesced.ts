/** Many calls within `pause` ms become one run; runs never overlap, and a call during a run leads to exactly one more. */
export function coalesced(run: () => Promise<unknown>, pause: number): () => void {
  // biome-ignore lint/correctness/noUnusedVariables: `??=` reads it
  let timer: ReturnType<typeof setTimeout> | undefined;
  let running = false;
  let again = false;
  const start = async () => {
    timer = undefined;
    running = true;
    try {
      await run();
    } catch {
      // The run reports its own failure; the next event tries again.
    }
    running = false;
    if (again) {
      again = false;
      call();
    }
  };
  const call = () => {
    if (running) again = true;
    else timer ??= setTimeout(start, pause);
  };
  return call;
}
