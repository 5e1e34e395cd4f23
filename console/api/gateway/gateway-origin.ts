/** The one address the console talks to: `bff.` before the host it was served from, port included. */
export function gatewayOrigin(host: string): string {
  return `https://bff.${host}`;
}

export function liveUrl(host: string): string {
  return `wss://bff.${host}/ws`;
}
