import { createRoot } from 'react-dom/client';
import { loadConsoleConfig } from '../api/gateway/console-config.ts';
import { GatewayClient } from '../api/gateway/gateway-client.ts';
import { LiveChannel } from '../api/live/live-channel.ts';
import { liveUrl } from '../api/gateway/gateway-origin.ts';
import { LogRing } from '../api/live/log-ring.ts';
import { Problem } from '../api/gateway/problem.ts';
import { ErrorBoundary } from '../widgets/page/error-boundary.tsx';
import { Broken } from '../widgets/page/page-state.tsx';
import { Console } from './console.tsx';

declare global {
  interface Window {
    platformConsole?: { log(): unknown[] };
  }
}

const log = new LogRing();
window.platformConsole = { log: () => log.entries() };
addEventListener('error', ({ message }) => log.add({ kind: 'fault', text: message }));
addEventListener('unhandledrejection', ({ reason }) => log.add({ kind: 'fault', text: String(reason) }));

const client = new GatewayClient({ host: location.host, log });
const live = new LiveChannel({ url: liveUrl(location.host), log });
const root = createRoot(document.getElementById('console') as HTMLElement);

try {
  const config = await loadConsoleConfig();
  root.render(
    <ErrorBoundary action={() => client.action}>
      <Console config={config} client={client} live={live} />
    </ErrorBoundary>,
  );
} catch (error) {
  root.render(
    <main className="alone">
      <Broken problem={Problem.of(error)} retry={() => location.reload()} />
    </main>,
  );
}
