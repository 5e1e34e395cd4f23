import type { SupervisorContext } from '../context.ts';

/** A row that is older says nothing of who watches over this machine now. */
const FRESH_MS = 30_000;
const LOOK_MS = 2_000;

/**
 * One supervisor for each machine (SUP-001): another one that answers at this address is not joined, and not fought with.
 * Throws when there is one.
 */
export async function beSoleSupervisor({ processes: machine, clock }: SupervisorContext): Promise<void> {
  const others = (await machine.instances.rows(['captain'])).filter(
    ({ ip, pid, last_health_at: seen }) =>
      ip === machine.ip && pid !== process.pid && seen !== null && clock.now().getTime() - Date.parse(seen) < FRESH_MS,
  );
  for (const { port, pid } of others) {
    const answer = await machine.health('captain', port, LOOK_MS);
    if (answer.ok)
      throw new Error(
        `Another supervisor (process ${pid}) watches over ${machine.ip}. ` +
          'Stop it, or give this machine an address of its own by PLATFORM_CAPTAIN_IP.',
      );
  }
}
