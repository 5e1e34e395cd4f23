import type { Ctx } from '../context.ts';
import type { ProvisioningStep } from './provisioning-step.ts';

/** What is measured of a listing: one property for all of its installs, each of which is a dimension (C42). */
export function statisticsStep({ services: { statistics }, db }: Ctx): ProvisioningStep {
  return {
    name: 'statistics_property',
    async do({ listing_id, manifest }, signal) {
      const { property_id } = await statistics.provision({
        body: { env_id: manifest.listing_env_id, kind: 'listing', ref_id: listing_id, name: manifest.name },
        signal,
      });
      await db.sql`update listings set statistics_property_id = ${property_id} where listing_id = ${listing_id}`;
      return { statistics_property_id: property_id };
    },
    // Other installs are measured by it too; it goes with its listing.
    undo: async () => undefined,
  };
}
