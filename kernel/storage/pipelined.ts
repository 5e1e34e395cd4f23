import { Cluster, type Redis } from 'ioredis';

/**
 * Commands in one go, each answered in its place, a failed one by its error. On a cluster every command goes to the server of its keys,
 * in order per server; messages to channels leave when everything else has been answered, so that who is woken finds what woke him.
 */
export async function pipelined(client: Redis, commands: readonly (readonly string[])[]): Promise<unknown[]> {
  if (commands.length === 0) return [];
  if (!isCluster(client)) {
    // Not the client's own pipeline: each of those is an object of its own shape, and lives with all its commands until the next full
    // collection.
    const stream: Redis['stream'] | undefined = client.stream;
    stream?.cork();
    try {
      return Promise.all(commands.map(([command = '', ...args]) => client.call(command, ...args).catch((error: Error) => error)));
    } finally {
      stream?.uncork();
    }
  }
  const answers: unknown[] = [];
  const send = (wanted: (command: string) => boolean) =>
    Promise.all(
      commands.map(async ([command = '', ...args], index) => {
        if (wanted(command)) answers[index] = await client.call(command, ...args).catch((error: Error) => error);
      }),
    );
  await send(command => command !== 'PUBLISH');
  await send(command => command === 'PUBLISH');
  // As a pipeline does: when no server answered at all, the call has failed, not its commands.
  const [first] = answers;
  if (first instanceof Error && answers.every(answer => answer instanceof Error && !('command' in answer))) throw first;
  return answers;
}

/** Whether the client speaks to a cluster; it answers to the same calls. */
export const isCluster = (client: Redis): boolean => (client as unknown) instanceof Cluster;

/**
 * Hash tags, one for every server of a cluster that holds keys: a key with each of them lies on each of the servers. A single server
 * needs none.
 */
export function shardTags(client: Redis): readonly string[] {
  if (!isCluster(client)) return [];
  const { slots } = client as unknown as Cluster;
  const servers = new Set(slots.map(nodes => nodes?.[0]).filter(node => node !== undefined));
  const tags = new Map<string, string>();
  for (let n = 0; tags.size < servers.size && n < 100_000; n++) {
    const tag = `s${n}`;
    const server = slots[slotOf(tag)]?.[0];
    if (server !== undefined && !tags.has(server)) tags.set(server, tag);
  }
  return [...tags.values()].sort();
}

/** CRC-16/XMODEM of a tag, modulo the number of slots (Redis Cluster specification). */
function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc % 16_384;
}
