/** What this process has done since it started. */
export class Counters {
  produced = 0;
  consumed = 0;
  acked = 0;
  nacked = 0;
  dead_lettered = 0;
  sse_clients = 0;
}
