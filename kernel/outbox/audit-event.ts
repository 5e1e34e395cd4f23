/** Outbox rows of this type are audit events: the relay takes them to the registry's trail instead of the bus. */
export const AUDIT_EVENT = 'audit';
