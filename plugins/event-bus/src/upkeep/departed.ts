import type { LivingService } from '@platform/sdk';
import type { Groups } from '../consume/groups.ts';
import type { EventContracts } from '../contracts/event-contracts.ts';

/** A service that left the platform declares no events any more, and nothing waits for it on a stream. */
export async function forgetDeparted(
  services: readonly LivingService[],
  { contracts, groups }: { readonly contracts: EventContracts; readonly groups: Groups },
): Promise<void> {
  const gone = services.filter(({ life }) => life === 'gone');
  if (gone.length === 0) return;
  await contracts.forget(gone);
  await groups.forget(gone.map(({ service }) => service));
}
