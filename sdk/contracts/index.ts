/** The first-party contracts, for verticals: what the platform's services promise, and their events (KRN-025). */
export * from '../../catalog/generated/contracts.ts';
