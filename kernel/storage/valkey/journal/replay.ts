import type { ValkeyBridge } from '../bridge.ts';
import type { Remainder } from './journal.ts';
import { FirstLine, rawConnection, wire } from '../raw-connection.ts';

/**
 * Does again what the snapshot does not hold. As a source of imports the connection sees keys whose time is over, and the server ends none
 * of them meanwhile: a counter that was set, raised and over would otherwise be counted anew and stay for ever. Answers how many commands
 * failed.
 */
export async function replay(bridge: ValkeyBridge, { db, commands }: Remainder): Promise<number> {
  const { internal } = bridge;
  const failures = async () => Number(/total_error_replies:(\d+)/.exec(await internal.command('INFO', 'stats'))?.[1] ?? 0);
  await internal.command('CONFIG', 'SET', 'import-mode', 'yes');
  const before = await failures();
  const first = new FirstLine();
  const connection = rawConnection(
    bridge,
    bytes => first.hear(bytes),
    () => first.closed(),
  );
  // The first answer is that of the end: nothing between is answered.
  connection.send(Buffer.concat([wire('CLIENT', 'REPLY', 'OFF'), wire('CLIENT', 'IMPORT-SOURCE', 'ON'), wire('SELECT', String(db))]));
  connection.send(commands);
  connection.send(wire('CLIENT', 'REPLY', 'ON'));
  await first.line;
  connection.end();
  const failed = (await failures()) - before;
  await internal.command('CONFIG', 'SET', 'import-mode', 'no');
  return failed;
}
