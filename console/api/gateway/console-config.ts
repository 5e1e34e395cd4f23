/** `/console.json` of the console's own host: the names this build was not compiled with. */
export interface ConsoleConfig {
  readonly gateway: string;
  readonly services: { readonly registry: string; readonly identity: string; readonly app_store: string };
  readonly live_types: readonly string[];
  readonly system: { readonly org_id: string; readonly env_id: string };
}

export async function loadConsoleConfig(fetcher: typeof fetch = fetch): Promise<ConsoleConfig> {
  const response = await fetcher('/console.json', { headers: { accept: 'application/json' } });
  if (!response.ok) throw new Error(`/console.json answered ${response.status}`);
  return (await response.json()) as ConsoleConfig;
}
