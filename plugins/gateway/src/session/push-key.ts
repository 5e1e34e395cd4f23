/** Where the devices of a session are kept: they end with it. */
export const pushKey = (sessionHash: string): string => `bff:push:${sessionHash}`;
